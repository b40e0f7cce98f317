// Rows of numbers: threads in each state, threads that run each type of task, counters.

import { formatCount } from './format.js';
import { cssColour, orderedColour, stateColours } from './palette.js';
import { paintStack } from './pixels.js';
import { INDENT, RULER } from './rows.js';

/** Draws how many of a group's threads were in each state. @param {import('./timeline.js').TimelineView} timeline @param {import('./rows.js').Row} row */
export function drawStack(timeline, row) {
  const states = timeline.overview.states.length;
  const pixels = Math.max(1, Math.round(timeline.plotWidth));
  const shares = timeline.source.stack(row.key, row.tracks || [], timeline.from, timeline.span / pixels, pixels, states);
  if (!shares) return;
  for (let at = 0; at < shares.length; at++) if (shares[at] > 0) timeline.statesInSight[at % states]++;
  const tall = row.height - 4;
  const image = new ImageData(pixels, tall);
  paintStack(shares, states, Math.max(1, (row.tracks || []).length), new Uint32Array(image.data.buffer), 0, pixels, pixels, tall, stateColours(timeline.theme), timeline.order);
  timeline.image.width = pixels;
  timeline.image.height = tall;
  /** @type {CanvasRenderingContext2D} */ (timeline.image.getContext('2d')).putImageData(image, 0, 0);
  timeline.context.drawImage(timeline.image, timeline.gutter, RULER + row.y - timeline.scrollY + 2, timeline.plotWidth, tall);
}

/** Means of each type of task and the largest, taken once from an answer of the server. @type {WeakMap<Float32Array, {mean: number[], most: number}[]>} */
const meansOfTypes = new WeakMap();

/**
 * What a row of numbers shows: minimum, mean and maximum of each bucket; of types only the mean.
 * @param {import('./timeline.js').TimelineView} timeline
 * @param {import('./rows.js').Row} row
 * @returns {{most: number, least?: number, min: (number | null)[] | null, mean: (number | null)[], max: (number | null)[] | null, bucketNs: number, offset: number} | null}
 */
function seriesOf(timeline, row) {
  const pixels = Math.max(1, Math.round(timeline.plotWidth));
  if (row.slot === undefined) return timeline.source.counter(row.counter, timeline.from, timeline.span / pixels, pixels);
  const types = timeline.source.types(timeline.from, timeline.span / pixels, pixels);
  if (!types) return null;
  let known = meansOfTypes.get(types.data);
  if (!known) meansOfTypes.set(types.data, (known = []));
  if (!known[row.slot]) {
    const mean = Array.from({ length: types.buckets }, (_, i) => types.data[i * types.rows + row.slot]);
    known[row.slot] = { mean, most: mean.reduce((most, value) => Math.max(most, value), 0) };
  }
  return { ...known[row.slot], min: null, max: null, bucketNs: types.bucketNs, offset: types.offset };
}

/** What a row of numbers shows at a time. @param {import('./timeline.js').TimelineView} timeline @param {import('./rows.js').Row} row @param {number} at */
export function numbersAt(timeline, row, at) {
  const data = seriesOf(timeline, row);
  const bucket = data ? Math.floor((at - data.offset) / data.bucketNs) : -1;
  if (!data || bucket < 0 || bucket >= data.mean.length || data.mean[bucket] === null) return null;
  const start = data.offset + bucket * data.bucketNs;
  return { start, end: start + data.bucketNs, min: data.min && data.min[bucket], mean: data.mean[bucket], max: data.max && data.max[bucket] };
}

/** Draws a counter, or how many threads run tasks of a type. @param {import('./timeline.js').TimelineView} timeline @param {import('./rows.js').Row} row */
export function drawCounter(timeline, row) {
  const data = seriesOf(timeline, row);
  if (!data) return;
  // Nothing is at the bottom, unless there are values below it.
  const [most, least] = [Math.max(0, data.most), Math.min(0, data.least || 0)];
  if (most === least) return;
  const { context, theme } = timeline;
  const tall = row.height - 6;
  const bottom = RULER + row.y - timeline.scrollY + row.height - 3;
  const y = (value) => bottom - ((value - least) / (most - least)) * tall;
  const base = y(0);
  const top = data.max || data.mean;
  context.save();
  context.beginPath();
  context.rect(timeline.gutter, RULER, timeline.plotWidth, timeline.height);
  context.clip();
  context.fillStyle = row.slot === undefined ? theme.state[0] : cssColour(orderedColour(theme, row.slot));
  const first = Math.max(0, Math.floor((timeline.from - data.offset) / data.bucketNs));
  const last = Math.min(data.mean.length - 1, Math.ceil((timeline.from + timeline.span - data.offset) / data.bucketNs));
  // Bars of one shade are one path: a call for each bar costs more than all else that is drawn.
  const [light, dense, line] = [new Path2D(), new Path2D(), new Path2D()];
  const wide = Math.max(1, data.bucketNs / timeline.nsPerPixel);
  for (let i = first; i <= last; i++) {
    const mean = data.mean[i];
    if (mean === null) continue;
    const left = timeline.xOf(data.offset + i * data.bucketNs);
    // From nothing to the minimum dense, on to the maximum light, the mean as a line.
    const [low, high] = [y(data.min ? data.min[i] : mean), y(top[i])];
    light.rect(left, high, wide, Math.max(0.5, low - high));
    dense.rect(left, Math.min(low, base), wide, Math.abs(base - low));
    if (data.max) line.rect(left, y(mean) - 0.75, wide, 1.5);
  }
  for (const [alpha, path] of /** @type {[number, Path2D][]} */ ([[0.3, light], [data.max ? 0.65 : 1, dense], [1, line]])) {
    context.globalAlpha = alpha;
    context.fill(path);
  }
  context.globalAlpha = 1;
  context.restore();
  // Below the row's name: over the bars of a narrow page it would hide them.
  context.fillStyle = theme.text;
  context.font = '10px system-ui, sans-serif';
  context.textAlign = 'left';
  const words = data.most >= 100 || Number.isInteger(data.most) ? formatCount(data.most) : data.most.toPrecision(2);
  context.fillText(`max ${words}`, INDENT, bottom);
}
