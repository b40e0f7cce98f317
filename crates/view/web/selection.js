// A selected range: its tables, its report, and files of it.

import { NAME, element, bar, nameOf } from './elements.js';
import { formatCount, formatPercent, formatStart, formatTime, fitText, shellWord, unitOf } from './format.js';
import { saveFile } from './files.js';
import { findings } from './findings.js';
import { callPaths, efficiencyTree } from './report.js';
import { tables } from './report_tables.js';
import { table, timeColumn } from './table.js';
import { communicationMatrix } from './matrix.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/** @param {Viewer} viewer @param {{from: number, to: number} | null} range */
export function showRange(viewer, range) {
  clearTimeout(viewer.ranging);
  // Tables of what is no longer selected would be taken for those of the run.
  if (!range && document.getElementById('range-title')) viewer.showRun();
  if (!range || range.to <= range.from) return;
  const isNewest = viewer.turnPanel();
  viewer.ranging = setTimeout(async () => {
    const answer = await viewer.source.json('range', { from: range.from, to: range.to });
    if (!isNewest()) return;
    viewer.range = answer;
    const total = Object.values(answer.states).reduce((sum, ns) => sum + ns, 0);
    const { unit, show } = unitOf(total);
    const number = (name) => viewer.overview.states.findIndex((state) => state.name === name);
    const states = Object.entries(answer.states).sort((a, b) => b[1] - a[1]);
    const useful = (row) => viewer.overview.states.reduce((sum, state) => sum + (state.group === 'useful' ? row.states[state.name] || 0 : 0), 0);
    // Without threads, or if samples are all that is known of them, states say nothing.
    const isUnknown = total === 0 || (viewer.report.samples_alone && states.every(([name]) => name === 'unknown'));
    const command = `taskscope slice ${shellWord(String(viewer.report.trace))} --range ${answer.range} -o part.trace`;
    viewer.panel.replaceChildren(element('h2', { id: 'range-title' }, `selected: ${formatTime(answer.wall_ns)}`),
      viewer.facts([['from', formatStart(range.from, range.to - range.from)], ['to', formatStart(range.to, range.to - range.from)], ['tasks begun', formatCount(answer.tasks_begun)]]),
      element('button', { type: 'button', onclick: () => viewer.timeline.show(range.from, range.to) }, 'zoom to it (f)'), ' ',
      element('button', { type: 'button', id: 'save-slice', title: 'the selected time as a trace, in an archive', onclick: () => saveSlice(viewer, range) }, 'save as a slice'), ' ',
      element('button', { type: 'button', id: 'report-part', title: 'efficiency, findings, causes, task types, waits, call paths of the selected time', onclick: () => reportPart(viewer, range) }, 'report it'), ' ',
      element('button', { type: 'button', id: 'save-page', title: 'the report of the selected time with its timeline, as one HTML file', onclick: () => savePage(viewer, range) }, 'save as HTML'),
      answer.queues.length ? table('By device queue', [{ title: 'queue', cell: (row) => nameOf(row.name) }, { title: 'begun', number: true, cell: (row) => formatCount(row.operations_begun) },
        timeColumn('kernels', (row) => row.kernels_ns, formatTime), timeColumn('transfers', (row) => row.transfers_ns, formatTime)], answer.queues) : '',
      answer.functions.length ? table('By function, samples taken for time', [{ title: 'function', cell: (row) => nameOf(row.name) }, timeColumn('in it', (row) => row.own_ns, formatTime),
        timeColumn('with what it calls', (row) => row.total_ns, formatTime), { title: 'samples', number: true, cell: (row) => formatCount(row.samples) }], answer.functions) : '',
      isUnknown ? '' : table('By state', [{ title: 'state', cell: ([name]) => viewer.overview.states[number(name)].label },
        timeColumn(`thread-${unit}`, ([, ns]) => ns, show), { title: 'share', number: true, cell: ([, ns]) => formatPercent(ns, total) },
        { title: '', cell: ([name, ns]) => bar(ns / total, '', viewer.theme.state[number(name)]) }], states),
      isUnknown ? '' : table('By state and place', [{ title: 'state', cell: (row) => row.label }, { title: 'place', cell: (row) => nameOf(row.place) },
        timeColumn('time', (row) => row.ns, formatTime), { title: 'sections', number: true, cell: (row) => formatCount(row.sections) }], answer.places),
      isUnknown ? '' : table('By thread', [{ title: 'thread', cell: (row) => viewer.trackName(row.track) }, { title: 'useful', number: true, cell: (row) => formatPercent(useful(row), answer.wall_ns) }], answer.threads),
      element('p', { class: 'note' }, 'as a trace: ', element('code', { id: 'slice' }, command)));
  }, 60);
}

/** Shows the report of a range; a click on a name highlights its sections. @param {Viewer} viewer @param {{from: number, to: number}} range */
async function reportPart(viewer, range) {
  viewer.status.textContent = 'replaying the trace for the report of the selected time';
  const isNewest = viewer.turnPanel();
  try {
    const report = await viewer.source.json('report', { from: range.from, to: Math.max(range.to, range.from + 1) });
    const matrix = await viewer.source.json('matrix', { from: range.from, to: Math.max(range.to, range.from + 1) });
    if (!isNewest()) return;
    const known = { states: viewer.overview.states };
    const link = (text) => (text ? element('button', { type: 'button', class: 'link name', title: `highlight ${text.slice(0, 2000)}`, onclick: () => viewer.highlightName(text) }, fitText(text, NAME)) : nameOf(text));
    const length = range.to - range.from;
    viewer.panel.replaceChildren(element('h2', { id: 'part-title', tabindex: -1 }, `report of ${formatTime(length)} from ${formatStart(range.from, length)} on`),
      report.verdict ? element('p', { class: 'verdict' }, fitText(report.verdict, 600)) : '',
      element('p', { class: 'note' }, 'A click on a name highlights its sections. The same numbers: ', element('code', {}, `taskscope report ${report.part} ${shellWord(String(viewer.report.trace))}`)),
      efficiencyTree(report), findings(report, known, viewer.theme, 0, null) || '', tables(report, known, viewer.theme, link) || '', communicationMatrix(matrix) || '', callPaths(report, viewer.panel.clientWidth) || '');
    document.getElementById('part-title')?.focus();
    // For the console and for tests.
    viewer.part = report;
  } catch (error) {
    viewer.say(error);
  } finally {
    // Also where the panel shows something else by now.
    viewer.status.textContent = '';
  }
}

/** Saves the report of a range, with its timeline, as one file that needs no server. @param {Viewer} viewer @param {{from: number, to: number}} range */
async function savePage(viewer, range) {
  viewer.status.textContent = 'replaying the trace for a page of the selected time';
  try {
    const response = await viewer.source.request('page', { from: range.from, to: Math.max(range.to, range.from + 1) });
    saveFile('part.html', new Blob([await response.arrayBuffer()], { type: 'text/html' }));
  } catch (error) {
    viewer.say(error);
  }
  viewer.status.textContent = '';
}

/** Saves a range as a trace of its own. @param {Viewer} viewer @param {{from: number, to: number}} range */
export async function saveSlice(viewer, range) {
  viewer.status.textContent = 'cutting the slice';
  try {
    const response = await viewer.source.request('slice', { from: range.from, to: Math.max(range.to, range.from + 1) });
    saveFile('slice.trace.tar', await response.blob());
  } catch (error) {
    viewer.say(error);
  }
  viewer.status.textContent = '';
}
