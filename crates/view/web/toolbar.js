// The controls above the timeline.

import { element } from './elements.js';
import { ORDERS } from './rows.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/** @param {Viewer} viewer */
export function makeToolbar(viewer) {
  const button = (id, label, title, onclick) => element('button', { type: 'button', id, title, onclick }, label);
  viewer.search = /** @type {HTMLInputElement} */ (element('input', { id: 'search', type: 'search', placeholder: 'gemm, task 12, duration>1ms', title: 'a word of a state, task type or place; task 12; or a filter: state=barrier and duration>1ms', 'aria-label': 'Search', size: 30, maxlength: 400 }));
  viewer.search.addEventListener('input', () => { viewer.matches.textContent = ''; });
  viewer.search.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') viewer.find(event.shiftKey ? 'previous' : 'next');
    // The browser would empty the field, and the next match would be one of nothing.
    if (event.key === 'Escape') { viewer.timeline.canvas.focus(); event.preventDefault(); }
  });
  viewer.view = /** @type {HTMLSelectElement} */ (element('select', { id: 'view', 'aria-label': 'View', title: 'view of the first rows', onchange: () => viewer.setViews([viewer.view.value, ...viewer.timeline.views.slice(1)]) }));
  viewer.second = /** @type {HTMLSelectElement} */ (element('select', { id: 'second', 'aria-label': 'Add a view', title: 'a further view below, aligned in time',
    onchange: () => { if (viewer.second.value) viewer.setViews([...viewer.timeline.views, viewer.second.value]); } }));
  viewer.tall = /** @type {HTMLSelectElement} */ (element('select', { id: 'tall', 'aria-label': 'Height of rows', title: 'height of rows', onchange: () => viewer.timeline.setRowMode(viewer.tall.value) },
    ...[['fit', 'fit all rows'], ['compact', 'compact rows'], ['normal', 'normal rows'], ['tall', 'tall rows']].map(([value, label]) => element('option', { value }, label))));
  viewer.order = /** @type {HTMLSelectElement} */ (element('select', { id: 'order', 'aria-label': 'Order of threads', title: 'which threads, and in which order', onchange: () => viewer.timeline.orderRows(viewer.order.value) },
    ...Object.entries(ORDERS).map(([value, label]) => element('option', { value }, label))));
  viewer.only = /** @type {HTMLInputElement} */ (element('input', { id: 'only', type: 'search', placeholder: 'rows', title: 'show rows whose names have these words', 'aria-label': 'Filter rows', size: 8, maxlength: 200, oninput: () => viewer.timeline.chooseRows(viewer.only.value) }));
  viewer.only.addEventListener('keydown', (event) => { if (event.key === 'Enter') viewer.timeline.canvas.focus(); });
  viewer.chips = element('span', { id: 'chips' });
  viewer.status = element('span', { id: 'status', role: 'status' });
  viewer.matches = element('span', { id: 'matches', role: 'status' });
  viewer.fillViews();
  viewer.where = button('where', 'highlight', 'dim rows that do not match the search (h)', () => viewer.highlight(viewer.source.filter === viewer.search.value.trim() ? '' : viewer.search.value.trim()));
  viewer.where.setAttribute('aria-pressed', 'false');
  viewer.flowsButton = button('flows', 'flows', 'arrows of the visible part: dependences, creation, messages, wakes, submissions (e)', () => viewer.toggleFlows());
  viewer.flowsButton.setAttribute('aria-pressed', 'false');
  return element('div', { class: 'toolbar', role: 'toolbar', 'aria-label': 'Viewer' },
    element('h1', {}, 'taskscope'), viewer.view, viewer.second, viewer.chips,
    button('in', '+', 'zoom in (+)', () => viewer.timeline.zoom(0.5)), button('out', '−', 'zoom out (−)', () => viewer.timeline.zoom(2)),
    button('all', 'all', 'the whole run (Home)', () => viewer.timeline.show(0, viewer.overview.length_ns)), viewer.order, viewer.tall, viewer.only, button('top', 'top', 'put the row with the focus on top, or back (p)', () => viewer.timeline.toggleTop()),
    viewer.search, button('previous', '◂', 'previous match (shift+n)', () => viewer.find('previous')), button('next', '▸', 'next match (n)', () => viewer.find('next')), viewer.matches,
    viewer.where, viewer.flowsButton, button('png', 'PNG', 'save the visible part as PNG', () => viewer.png()), button('svg', 'SVG', 'save the visible part as SVG', () => viewer.svg()),
    button('slice-view', 'slice', 'save the visible time as a trace', () => viewer.slice({ from: Math.floor(viewer.timeline.from), to: Math.ceil(viewer.timeline.from + viewer.timeline.span) })), button('link', 'link', 'copy the address of this view', () => viewer.copyLink()), button('source', 'source', 'source of the opened section, or the file with most time (c)', () => viewer.showSource()), button('note', 'notes', 'notes on this run, and a new one (b)', () => viewer.showNotes()), button('theme', 'light/dark', 'light or dark', () => viewer.toggleTheme()),
    button('run', 'run', 'the run and its findings', () => viewer.showRun()), button('keys', '?', 'keys', () => viewer.showKeys()), viewer.status);
}
