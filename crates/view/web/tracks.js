// Rows of tracks: threads, CPUs, rows of views and of device queues, each a line of one image.

import { SUB, paintLife, paintTrack, NOTHING } from './pixels.js';
import { drawNames } from './names.js';
import { CODE, RULER } from './rows.js';

/**
 * Draws what tracks were in, one line of an image for each, and asks for what is missing.
 * @param {import('./timeline.js').TimelineView} timeline
 * @param {import('./rows.js').Row[]} rows
 */
export function drawTracks(timeline, rows) {
  timeline.inSight.clear();
  timeline.statesInSight.fill(0);
  timeline.flagsInSight = 0;
  if (rows.length === 0) return;
  const { theme, context, ratio } = timeline;
  const pixels = Math.max(1, Math.round(timeline.plotWidth * ratio));
  const nsPerPixel = timeline.span / pixels;
  const image = new ImageData(pixels, rows.length * SUB);
  const numbers = new Uint32Array(image.data.buffer);
  const columns = new Uint32Array(pixels);
  const values = new Uint32Array(pixels);
  /** @type {Map<string, number[]>} */
  const missing = new Map();
  /** @type {{row: import('./rows.js').Row, columns: Uint32Array, values: Uint32Array}[]} */
  const shown = [];
  rows.forEach((row, i) => {
    const view = row.view || 'state';
    const own = view === 'state' ? null : values;
    columns.fill(NOTHING);
    if (!timeline.source.columns(view, row.track, timeline.from, nsPerPixel, columns, own)) {
      const list = missing.get(view) || [];
      list.push(/** @type {number} */ (row.track));
      missing.set(view, list);
    }
    const colours = own && timeline.coloursOf(view);
    if (colours) countValues(timeline, view, columns, values);
    else if (!own) countStates(timeline, columns);
    if (row.foreign) shown.push({ row, columns: columns.slice(), values: values.slice() });
    paintTrack(columns, own, numbers, i * SUB * pixels, pixels, theme, colours, row.foreign, isSearched(row) && Boolean(timeline.source.filter));
    if (!row.isThread) return;
    // Between its waits a thread is there all the same.
    columns.fill(NOTHING);
    if (!timeline.source.columns('state', row.thread, timeline.from, nsPerPixel, columns, null)) missing.set('state', [...(missing.get('state') || []), /** @type {number} */ (row.thread)]);
    paintLife(columns, numbers, i * SUB * pixels, pixels, theme);
  });
  timeline.image.width = pixels;
  timeline.image.height = rows.length * SUB;
  /** @type {CanvasRenderingContext2D} */ (timeline.image.getContext('2d')).putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  rows.forEach((row, i) => {
    const y = RULER + row.y - timeline.scrollY;
    context.drawImage(timeline.image, 0, i * SUB, pixels, SUB, timeline.gutter, y + 1, timeline.plotWidth, row.height - 2);
  });
  drawNames(timeline, rows, shown);
  for (const [view, tracks] of missing) timeline.source.want(view, tracks.sort((a, b) => a - b), timeline.from, nsPerPixel, pixels);
}

/** Whether a search looks at a row: at threads, at operations of device queues, and at code by samples. @param {import('./rows.js').Row} row */
function isSearched(row) {
  return !row.foreign || row.view === 'devices' || row.view === CODE;
}

/** Adds how many pixels of a row show each state. @param {import('./timeline.js').TimelineView} timeline @param {Uint32Array} columns */
function countStates(timeline, columns) {
  for (const bucket of columns) {
    timeline.statesInSight[bucket & 255]++;
    timeline.flagsInSight |= bucket >> 16 & 255;
  }
}

/** Adds how many pixels of a row show each value. @param {import('./timeline.js').TimelineView} timeline @param {string} view @param {Uint32Array} columns @param {Uint32Array} values */
function countValues(timeline, view, columns, values) {
  let counts = timeline.inSight.get(view);
  if (!counts) timeline.inSight.set(view, (counts = new Map()));
  for (let first = 0, x = 1; first < values.length; first = x++) {
    while (x < values.length && values[x] === values[first]) x++;
    // What a pixel shows that has nothing is left from before.
    if ((columns[first] & 255) !== 255) counts.set(values[first], (counts.get(values[first]) || 0) + x - first);
  }
}
