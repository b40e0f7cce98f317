// The pane of machine code: a function with samples, each instruction with its own, and its source line.

import { bar, element } from './elements.js';
import { formatCount, formatNumberOf, formatTime, fitText } from './format.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/**
 * Shows the code of the function with most samples: at a line, in a file, of the run; or of a number in the list.
 * @param {Viewer} viewer
 * @param {{file?: string, line?: number, function?: number}} of
 * @param {(file: string, line: number) => void} showLine what a click on a line does
 */
export async function showAssembly(viewer, of, showLine) {
  const isNewest = viewer.turnPanel();
  try {
    const asked = Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined && value !== null && value !== ''));
    const found = await viewer.source.json('assembly', asked);
    if (isNewest()) drawAssembly(viewer, found, of, showLine);
  } catch (error) {
    viewer.say(error);
  }
}

/** @param {Viewer} viewer @param {any} found @param {{file?: string, line?: number}} of @param {(file: string, line: number) => void} showLine */
function drawAssembly(viewer, found, of, showLine) {
  const { functions, instructions, shown, function: own, missing, count } = found;
  const most = Math.max(1, ...instructions.map((row) => row.samples));
  const short = (/** @type {string} */ file) => file.split('/').pop();
  let before = '';
  const row = (one) => {
    const place = one.file ? `${short(one.file)}:${one.line}` : '';
    // The line of a run of instructions stands at its first one.
    const isNew = place !== before;
    before = place;
    return element('tr', { class: one.samples ? 'hot' : null, 'data-number': one.number },
      element('th', { scope: 'row', class: 'number' }, one.address),
      element('td', { class: 'number' }, ...(one.samples ? [formatCount(one.samples), bar(one.samples / most, `${formatNumberOf(one.samples, 'sample')}, ${formatTime(one.ns)}`)] : [''])),
      element('td', { class: 'code' }, fitText(one.text, 200), one.target === null ? '' : ` ${one.target > one.number ? '↓' : '↑'}`),
      element('td', {}, place && isNew ? element('button', { type: 'button', class: 'link', onclick: () => showLine(one.file, one.line) }, fitText(place, 40)) : ''));
  };
  const list = /** @type {HTMLSelectElement} */ (element('select', { id: 'assembly-function', 'aria-label': 'Functions with samples', title: 'functions, most samples first', onchange: () => { if (list.value !== '') showAssembly(viewer, { function: Number(list.value) }, showLine); } },
    ...(shown === null ? [element('option', { value: '' }, '–')] : []),
    ...functions.map((one, at) => element('option', { value: at }, `${fitText(one.name, 60)}, ${formatNumberOf(one.samples, 'sample')}, ${formatTime(one.ns)}`))));
  if (shown !== null) list.value = String(shown);
  const table = element('table', { class: 'source', tabindex: -1 }, element('caption', { class: 'hidden' }, `Instructions of ${fitText(own ? own.name : '', 200)}`),
    element('thead', {}, element('tr', {}, ...[['address', 'number'], ['samples', 'number'], ['instruction', ''], ['line', '']].map(([title, kind]) => element('th', { scope: 'col', class: kind || null }, title)))),
    element('tbody', {}, ...instructions.map(row)));
  const [known, all] = found.samples;
  viewer.panel.replaceChildren(element('h2', { id: 'assembly-title' }, own ? fitText(own.name, 100) : 'Machine code'),
    functions.length ? element('p', {}, list) : '',
    own ? element('p', { class: 'note' }, `${formatNumberOf(own.samples, 'sample')} in it, ${formatTime(own.ns)}. An instruction has the samples that interrupted the thread at it: the costly one is it, or one shortly before.`) : '',
    all > known ? element('p', { class: 'note' }, `Of ${formatNumberOf(all, 'sample')} of the run, ${formatCount(all - known)} are in code whose file or function is not known.`) : '',
    missing ? element('p', { id: 'assembly-missing', class: 'warn' }, fitText(missing, 400)) : '',
    instructions.length < count ? element('p', { class: 'note' }, `${formatCount(instructions.length)} of ${formatCount(count)} instructions, around the one with most samples.`) : '',
    element('p', {}, element('button', { type: 'button', id: 'assembly-source', onclick: () => viewer.showSource() }, 'source (c)')),
    instructions.length ? table : '');
  const hottest = instructions.reduce((best, one) => (!best || one.samples > best.samples ? one : best), null);
  if (hottest) table.querySelector(`[data-number="${hottest.number}"]`)?.scrollIntoView({ block: 'center' });
  viewer.live.textContent = missing || `machine code of ${own ? own.name : ''}`;
}
