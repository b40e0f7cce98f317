// The source pane: a file of the run, each line with its time and the waiting for it.

import { bar, element } from './elements.js';
import { showAssembly } from './assembly_pane.js';
import { formatCount, formatTime, fitText } from './format.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/** Kinds of time of a line: name in the answer, title, what it is. @type {[string, string, string][]} */
const HEATS = [
  ['work_ns', 'work', 'work in the line and in code of other files that it calls, by samples of the whole run'], ['useful_ns', 'useful', 'useful work of the construct at the line, in the visible or selected time'],
  ['lost_ns', 'lost', 'waiting and overhead of the construct at the line, in the visible or selected time'], ['blamed_ns', 'blamed', 'waiting of others for the line, of the whole run'],
];

/** The answers' time: the selected range, else the visible part. @param {Viewer} viewer */
function timeInQuestion(viewer) {
  const { selection, from, span } = viewer.timeline;
  return selection || { from: Math.floor(from), to: Math.ceil(from + span) };
}

/** The opened section, or the line of the opened sample. @param {Viewer} viewer @returns {{track?: number, at?: number, file?: string, line?: number}} */
function openedOf(viewer) {
  const { marked } = viewer.timeline;
  if (marked && marked.sample && marked.sample.file) return { file: marked.sample.file, line: marked.sample.line };
  return marked && !marked.view ? { track: marked.track, at: marked.start } : {};
}

/**
 * Shows the source of a section, of a file, or the one with most time.
 * @param {Viewer} viewer
 * @param {{track?: number, at?: number, file?: string, line?: number}} [of]
 * @param {number} [line] to show, other than the one in question
 */
export async function showSource(viewer, of = openedOf(viewer), line = 0) {
  const isNewest = viewer.turnPanel();
  const time = timeInQuestion(viewer);
  try {
    const found = await viewer.source.json('source', { ...of, ...(line ? { line } : {}), from: time.from, to: Math.max(time.to, time.from + 1) });
    if (!isNewest()) return;
    if (found) drawSource(viewer, found, time);
    else if (of.file) viewer.say(`${of.file}: the run has no time in this file.`);
    else viewer.say('This place has no source: its file is not known (it needs debug information, -g).');
  } catch (error) {
    viewer.say(error);
  }
}

/** @param {Viewer} viewer @param {any} found @param {{from: number, to: number}} time */
function drawSource(viewer, found, time) {
  const heat = new Map(found.heat.map((row) => [row.line, row]));
  const kinds = HEATS.filter(([kind]) => found.heat.some((row) => row[kind] > 0));
  const most = Object.fromEntries(kinds.map(([kind]) => [kind, Math.max(...found.heat.map((row) => row[kind]))]));
  const cells = (row) => kinds.map(([kind, title]) => element('td', { class: 'number' }, ...(row && row[kind] ? [formatTime(row[kind]), bar(row[kind] / most[kind], `${title}: ${formatTime(row[kind])}`)] : [''])));
  const line = (number, text) => element('tr', { class: number === found.line ? 'chosen' : heat.has(number) ? 'hot' : null, 'data-line': number },
    element('th', { scope: 'row', class: 'number' }, String(number)), ...cells(heat.get(number)), element('td', { class: 'code' }, text));
  const shown = found.lines.map((text, at) => line(found.first_line + at, text));
  // Without the file its lines have their times still.
  const lines = shown.length ? shown : found.heat.map((row) => line(row.line, ''));
  const files = /** @type {HTMLSelectElement} */ (element('select', { id: 'source-file', 'aria-label': 'Files of the run', title: 'files of the run, most time first', onchange: () => showSource(viewer, { file: files.value }) },
    ...found.files.map(({ file, ns }) => element('option', { value: file }, `${fitText(file, 70)}, ${formatTime(ns)}`)),
    ...(found.file && !found.files.some(({ file }) => file === found.file) ? [element('option', { value: found.file }, fitText(found.file, 70))] : [])));
  files.value = found.file;
  const hot = found.heat.map((row) => row.line).sort((a, b) => a - b);
  const table = element('table', { class: 'source', tabindex: -1 }, element('caption', { class: 'hidden' }, `Lines of ${fitText(found.file, 200)}`),
    element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, 'line'), ...kinds.map(([, title, words]) => element('th', { scope: 'col', class: 'number', title: words }, title)), element('th', { scope: 'col' }, 'source'))), element('tbody', {}, ...lines));
  const goTo = (number) => table.querySelector(`[data-line="${number}"]`)?.scrollIntoView({ block: 'center' });
  let current = found.line;
  const step = (by) => {
    // The line in question may have no time: the next one after it, or before it, and around.
    const beyond = hot.filter((number) => (by > 0 ? number > current : number < current));
    const rest = beyond.length ? beyond : hot;
    current = rest[by > 0 ? 0 : rest.length - 1];
    table.querySelector('.chosen')?.classList.remove('chosen');
    table.querySelector(`[data-line="${current}"]`)?.classList.add('chosen');
    goTo(current);
    viewer.live.textContent = `line ${current}: ${kinds.filter(([kind]) => heat.get(current)[kind]).map(([kind, title]) => `${title} ${formatTime(heat.get(current)[kind])}`).join(', ')}`;
  };
  const machineCode = () => showAssembly(viewer, { file: found.file, line: heat.get(current)?.work_ns ? current : undefined }, (file, at) => showSource(viewer, { file }, at));
  viewer.panel.replaceChildren(element('h2', { id: 'source-title' }, found.file ? fitText(found.file.split('/').pop(), 100) : 'Source'),
    found.files.length ? element('p', {}, files) : '',
    found.path ? element('p', { class: 'note' }, fitText(found.path, 300), found.lines.length < found.lines_count ? `, lines ${found.first_line} to ${found.first_line + found.lines.length - 1} of ${formatCount(found.lines_count)}` : '') : '',
    found.missing ? element('p', { id: 'source-missing', class: 'warn' }, fitText(`${found.file ? `${found.file}: ` : ''}${found.missing}`, 500), found.file ? [' Try: ', 'taskscope view --source-path DIR'].join('') : '') : '',
    found.is_newer ? element('p', { class: 'warn' }, 'The file was changed after the run: lines may be others.') : '',
    element('p', { class: 'note' }, `Useful and lost time: ${formatTime(time.to - time.from)}, ${viewer.timeline.selection ? 'selected' : 'visible'}, at the line of the construct. `,
      found.has_samples ? 'Samples show the lines inside of it.' : 'The run has no samples, so the lines inside of it are not known: record --sample.'),
    hot.length > 1 ? element('p', {}, element('button', { type: 'button', id: 'hot-previous', title: 'previous line with time', onclick: () => step(-1) }, '◂ line'), ' ', element('button', { type: 'button', id: 'hot-next', title: 'next line with time', onclick: () => step(1) }, 'line ▸')) : '',
    element('p', {}, element('button', { type: 'button', id: 'machine-code', title: 'instructions of the function with most samples at the chosen line, else in this file', onclick: machineCode }, 'machine code')),
    lines.length ? table : '');
  if (found.line) goTo(found.line);
  viewer.live.textContent = found.missing || `${found.file}${found.line ? `, line ${found.line}` : ''}`;
}
