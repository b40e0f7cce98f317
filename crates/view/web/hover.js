// Hover texts of rows that show several tracks: states of many threads, numbers, folded rows.

import { formatCount, formatNumberOf, fitText } from './format.js';
import { numbersAt } from './numbers.js';
import { NOTHING } from './pixels.js';


/** Maximum number of states shown of a group of threads. */
const MAX_STATES = 6;
/** Minimum number of threads of a state that is shown. */
const MIN_THREADS = 0.005;

/**
 * Text about the point under the pointer, and its time; null without one.
 * @param {import('./timeline.js').TimelineView} timeline
 * @param {import('./rows.js').Row} row
 * @param {number} x on the canvas; left of the plot all that is in sight is meant
 * @returns {{words: string, start: number, end: number} | null}
 */
export function wordsAt(timeline, row, x) {
  const isFolded = row.kind !== 'stack' && row.key !== undefined && timeline.collapsed.has(row.key);
  if (x < timeline.gutter && !isFolded) return null;
  if (row.kind === 'counter') return counterWords(timeline, row, timeline.timeAt(x));
  if (row.kind !== 'stack' && !isFolded) return null;
  const part = partAt(timeline, x);
  const time = timeOf(timeline, row, part);
  if (row.kind === 'stack') {
    const words = stateWords(timeline, row, part);
    return words === null ? null : { words, ...time };
  }
  const view = timeline.overview.views.find((view) => view.name === row.view);
  const leads = view && view.rows ? leadingValue(timeline, row, view, part) : row.tracks ? leadingState(timeline, row, part) : null;
  return { words: `${formatNumberOf(row.folds || 0, 'row')} folded${leads === null ? '' : `, mostly ${leads}`}`, ...time };
}

/** Pixels of the plot. @typedef {{first: number, last: number, pixels: number, nsPerPixel: number}} Part */

/** @param {import('./timeline.js').TimelineView} timeline @param {number} x @returns {Part} */
function partAt(timeline, x) {
  const pixels = Math.max(1, Math.round(timeline.plotWidth));
  const nsPerPixel = timeline.span / pixels;
  if (x < timeline.gutter) return { first: 0, last: pixels, pixels, nsPerPixel };
  const first = Math.min(pixels - 1, Math.floor(((x - timeline.gutter) / timeline.plotWidth) * pixels));
  return { first, last: first + 1, pixels, nsPerPixel };
}

/** The time that a part is about: that of a file's bucket, where this is longer than a pixel. @param {import('./timeline.js').TimelineView} timeline @param {import('./rows.js').Row} row @param {Part} part */
function timeOf(timeline, row, { first, last, nsPerPixel }) {
  const start = timeline.from + first * nsPerPixel;
  const end = timeline.from + last * nsPerPixel;
  const { bucketNs, offset } = timeline.source.stackBuckets ? timeline.source.stackBuckets(row.key) : { bucketNs: 0, offset: 0 };
  if (bucketNs <= end - start) return { start, end };
  const begin = Math.max(0, offset + Math.floor(((start + end) / 2 - offset) / bucketNs) * bucketNs);
  return { start: begin, end: begin + bucketNs };
}

/** @param {import('./timeline.js').TimelineView} timeline @param {import('./rows.js').Row} row @param {number} at */
function counterWords(timeline, row, at) {
  const found = numbersAt(timeline, row, at);
  if (!found) return null;
  const { start, end, min, mean, max } = found;
  const words = max === null ? `${mean.toFixed(2)} threads on average` : `from ${formatCount(min)} to ${formatCount(max)}, mean ${mean.toFixed(2)}`;
  return { words, start, end };
}

/** How many threads of a group were in each state, most first; null where that is not known yet. @param {import('./timeline.js').TimelineView} timeline @param {import('./rows.js').Row} row @param {Part} part */
function threadsByState(timeline, row, { first, last, pixels, nsPerPixel }) {
  const { states } = timeline.overview;
  const shares = timeline.source.stack(row.key, row.tracks || [], timeline.from, nsPerPixel, pixels, states.length);
  if (!shares) return null;
  const sums = new Float64Array(states.length);
  for (let x = first; x < last; x++) for (let state = 0; state < states.length; state++) sums[state] += shares[x * states.length + state];
  return states.map((state, number) => ({ label: state.label, threads: sums[number] / (last - first) })).filter((row) => row.threads >= MIN_THREADS).sort((a, b) => b.threads - a.threads);
}

/** @param {import('./timeline.js').TimelineView} timeline @param {import('./rows.js').Row} row @param {Part} part */
function stateWords(timeline, row, part) {
  const found = threadsByState(timeline, row, part);
  if (!found) return null;
  const sum = (rows) => rows.reduce((all, { threads }) => all + threads, 0);
  const all = (row.tracks || []).length;
  const parts = found.slice(0, MAX_STATES).map(({ label, threads }) => `${threads.toFixed(2)} ${label}`);
  const [others, rest] = [sum(found.slice(MAX_STATES)), all - sum(found)];
  if (others >= MIN_THREADS) parts.push(`${others.toFixed(2)} in other states`);
  if (rest >= MIN_THREADS) parts.push(`${rest.toFixed(2)} not known or absent`);
  return `of ${formatNumberOf(all, row.key === 'all' ? 'worker' : 'thread')} ${parts.join(', ')}`;
}

/** @param {import('./timeline.js').TimelineView} timeline @param {import('./rows.js').Row} row @param {Part} part */
function leadingState(timeline, row, part) {
  const found = threadsByState(timeline, row, part);
  return found && (found.length ? found[0].label : 'nothing');
}

/** What most of a folded view's rows show; null where it has no names or is not all there. @param {import('./timeline.js').TimelineView} timeline @param {import('./rows.js').Row} row @param {any} view @param {Part} part */
function leadingValue(timeline, row, view, { first, last, nsPerPixel }) {
  if (!view.values || !view.values.length) return null;
  const room = new Map([[0, 0]]);
  for (const track of row.tracks || []) {
    const [columns, values] = [new Uint32Array(last - first).fill(NOTHING), new Uint32Array(last - first)];
    if (!timeline.source.columns(view.name, track, timeline.from + first * nsPerPixel, nsPerPixel, columns, values)) return null;
    columns.forEach((column, x) => {
      const value = (column & 255) === 255 ? 0 : values[x];
      room.set(value, (room.get(value) || 0) + 1);
    });
  }
  const [value] = [...room].reduce((most, one) => (one[1] > most[1] ? one : most));
  const named = view.values.find(([known]) => known === value);
  return value === 0 ? 'nothing' : named ? fitText(named[1], 60) : String(value);
}
