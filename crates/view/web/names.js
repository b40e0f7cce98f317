// Names in the bars of rows: of threads from the server, which knows each section, of other rows from the values in sight.

import { RULER } from './rows.js';

/** Least height of a row that has room for a name, pixels. */
const MIN_TALL = 11;
/** Least number of letters of a name that was cut: fewer do not tell names apart. */
const MIN_LETTERS = 8;
/** What a wait's name has beside its object. */
const BY = /, (held|woken) by .*$/;
/** Least width of a bar that has room for a name, and the room beside it. */
const MIN_WIDE = 22;
const BESIDE = 3;
/** Rows whose names are asked for together. */
const BLOCK = 32;

/**
 * Draws the names of what is wide enough.
 * @param {import('./timeline.js').TimelineView} timeline
 * @param {import('./rows.js').Row[]} rows of tracks, in sight
 * @param {{row: import('./rows.js').Row, columns: Uint32Array, values: Uint32Array}[]} shown what is in the pixels of rows of values
 */
export function drawNames(timeline, rows, shown) {
  const { context } = timeline;
  if (!rows.length || rows[0].height < MIN_TALL || !timeline.source.bars) return;
  context.save();
  context.beginPath();
  context.rect(timeline.gutter, RULER, timeline.plotWidth, timeline.height);
  context.clip();
  const tall = rows[0].height;
  context.font = `${tall < 13 ? 9 : tall < 18 ? 10 : 11}px system-ui, sans-serif`;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  for (const [view, own] of rowsByView(rows)) {
    const words = timeline.overview.views.find((row) => row.name === view);
    if (words && words.rows) continue;
    const blocks = new Set(own.map((row) => Math.floor(timeline.rows.indexOf(row) / BLOCK)));
    for (const block of blocks) {
      const part = timeline.rows.slice(block * BLOCK, (block + 1) * BLOCK).filter((row) => row.kind === 'track' && (row.view || 'state') === view);
      const places = new Map(own.map((row) => [row.track, row]));
      const found = timeline.source.bars(view, part.map((row) => row.track).sort((a, b) => a - b), timeline.from, timeline.nsPerPixel, timeline.plotWidth);
      if (!found) continue;
      for (const [track, start, end, word, state] of found.bars) {
        const row = places.get(track);
        if (row) drawName(timeline, row, start, end, found.words[word], view === 'state' ? timeline.theme.inks[state] : timeline.theme.inkOfValues);
      }
    }
  }
  for (const { row, columns, values } of shown) drawValueNames(timeline, row, columns, values);
  context.restore();
}

/** Rows by their view. @param {import('./rows.js').Row[]} rows @returns {Map<string, import('./rows.js').Row[]>} */
function rowsByView(rows) {
  const views = new Map();
  for (const row of rows) {
    const view = row.view || 'state';
    if (!views.has(view)) views.set(view, []);
    views.get(view).push(row);
  }
  return views;
}

/** Draws the names of runs of one value. @param {import('./timeline.js').TimelineView} timeline @param {import('./rows.js').Row} row @param {Uint32Array} columns @param {Uint32Array} values */
function drawValueNames(timeline, row, columns, values) {
  const words = timeline.wordsOf(row.view || '');
  if (!words) return;
  const scale = timeline.plotWidth / columns.length;
  for (let first = 0, x = 1; first < values.length; first = x++) {
    while (x < values.length && values[x] === values[first] && (columns[x] & 255) !== 255) x++;
    if (values[first] === 0 || (columns[first] & 255) === 255 || (x - first) * scale < MIN_WIDE) continue;
    const name = words.get(values[first]);
    if (name) drawName(timeline, row, timeline.from + first * scale * timeline.nsPerPixel, timeline.from + x * scale * timeline.nsPerPixel, name, timeline.theme.inkOfValues);
  }
}

/**
 * Draws a name in the visible part of a bar.
 * @param {import('./timeline.js').TimelineView} timeline
 * @param {import('./rows.js').Row} row
 * @param {number} start
 * @param {number} end
 * @param {string} name
 * @param {string} ink
 */
function drawName(timeline, row, start, end, name, ink) {
  const left = Math.max(timeline.gutter, timeline.xOf(start));
  const right = Math.min(timeline.width, timeline.xOf(end));
  if (right - left < MIN_WIDE) return;
  const words = nameIn(timeline, name, right - left - 2 * BESIDE);
  const { context } = timeline;
  const y = RULER + row.y - timeline.scrollY;
  // Neighbours of one colour are apart.
  if (left > timeline.gutter) {
    context.fillStyle = timeline.theme.page;
    context.fillRect(left, y + 1, 0.75, row.height - 2);
  }
  if (!words) return;
  // What is dimmed has pale bars.
  context.fillStyle = timeline.source.filter ? timeline.theme.text : ink;
  context.fillText(words, left + BESIDE, y + row.height / 2 + 0.5);
  timeline.named.push({ row, name, words, left, right });
}

/**
 * The form of a name that fits: whole, without the thread that a wait is for, cut in its middle; none if hardly a letter is left.
 * @param {import('./timeline.js').TimelineView} timeline
 * @param {string} name
 * @param {number} room pixels
 */
function nameIn(timeline, name, room) {
  const short = name.replace(BY, '');
  for (const form of short === name ? [name] : [name, short]) {
    const words = timeline.fitLabel(form, room);
    const isEnough = words === form || (form === short && words.length >= MIN_LETTERS);
    if (isEnough && timeline.context.measureText(words).width <= room) return words;
  }
  return '';
}
