// What hangs at the pointer.

import { element } from './elements.js';
import { formatStart, formatTime } from './format.js';
import { placeOf } from './rows.js';
import { shortLines } from './details.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/** How long the pointer rests before its section is asked for. */
const REST_MS = 40;

/** @param {Viewer} viewer @param {import('./rows.js').Row} row @param {number} at @param {number} x @param {number} y */
export function hoverSection(viewer, row, at, x, y) {
  clearTimeout(viewer.resting);
  viewer.resting = setTimeout(async () => {
    const number = (viewer.hovers = (viewer.hovers || 0) + 1);
    const found = await viewer.source.json('section', { ...placeOf(row), at }).catch(() => null);
    if (number !== viewer.hovers || !found) { if (!found) hideTip(viewer); return; }
    const lines = shortLines(found, row.label, (track) => viewer.trackName(track));
    if (found.view && typeof row.thread === 'number') {
      // A thread's row of a model's view: what the thread was in tells the line and the culprit.
      const section = await viewer.source.json('section', { track: row.thread, at }).catch(() => null);
      if (number !== viewer.hovers) return;
      if (section && section.state !== 'unknown') lines.push(...shortLines(section, viewer.trackName(row.thread), (track) => viewer.trackName(track)));
    }
    viewer.hovered = found;
    showTip(viewer, lines, x, y);
  }, REST_MS);
}

/** @param {Viewer} viewer @param {import('./rows.js').Row} row @param {{words: string, start: number, end: number}} found @param {number} x @param {number} y */
export function hoverWords(viewer, row, { words, start, end }, x, y) {
  hideTip(viewer);
  showTip(viewer, [row.label, words, `in ${formatTime(end - start)} from ${formatStart(start, end - start)} on`], x, y);
}

/** @param {Viewer} viewer @param {string[]} lines @param {number} x @param {number} y */
export function showTip(viewer, lines, x, y) {
  viewer.tip.replaceChildren(...lines.map((line) => element('div', {}, line)));
  const box = viewer.host.getBoundingClientRect();
  viewer.tip.style.display = 'block';
  viewer.tip.style.left = `${Math.min(box.left + x + 14, window.innerWidth - viewer.tip.offsetWidth - 8)}px`;
  viewer.tip.style.top = `${Math.min(box.top + y + 16, window.innerHeight - viewer.tip.offsetHeight - 8)}px`;
}

/** @param {Viewer} viewer */
export function hideTip(viewer) {
  clearTimeout(viewer.resting);
  viewer.hovers = (viewer.hovers || 0) + 1;
  viewer.tip.style.display = 'none';
}
