// The address of what is shown: written, read and copied.
//
// A link outlives the server: the port follows from the trace's path, the token that a browser used last is kept for that port,
// and the address has the run, so that it is not taken for another one.

import { element } from './elements.js';
import { runOf } from './notes.js';
import { ORDERS, foldedAtFirst } from './rows.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/** The part of the address that names what is shown. @param {Viewer} viewer */
export function addressOf(viewer) {
  // The address still names views that are not known yet.
  if (viewer.unknownViews) return location.hash;
  const t = viewer.timeline;
  const parts = [`from=${Math.round(t.from)}`, `to=${Math.round(t.from + t.span)}`, `views=${t.views.join('+')}`, `y=${Math.round(t.scrollY)}`];
  if (t.rowMode !== 'fit') parts.push(`rows=${t.rowMode}`);
  if (t.selection) parts.push(`select=${t.selection.from}-${t.selection.to}`);
  if (viewer.source.filter) parts.push(`where=${encodeURIComponent(viewer.source.filter)}`);
  if (t.chosen.order) parts.push(`order=${t.chosen.order}`);
  if (t.chosen.words) parts.push(`only=${encodeURIComponent(t.chosen.words)}`);
  if (t.chosen.top.length) parts.push(`top=${encodeURIComponent(t.chosen.top.join('\n'))}`);
  const atFirst = foldedAtFirst(viewer.overview);
  if (t.collapsed.size !== atFirst.size || [...t.collapsed].some((key) => !atFirst.has(key))) parts.push(`folded=${encodeURIComponent([...t.collapsed].join('\n'))}`);
  return `#${parts.join('&')}&run=${runOf(viewer.overview)}`;
}

/** Writes what is shown into the address, so that it can be sent to somebody. @param {Viewer} viewer */
export function writeAddress(viewer) {
  clearTimeout(viewer.remembering);
  viewer.remembering = setTimeout(() => {
    viewer.written = addressOf(viewer);
    history.replaceState(null, '', viewer.written);
  }, 120);
}

/** Shows what the address says. @param {Viewer} viewer */
export function readAddress(viewer) {
  const words = new URLSearchParams(location.hash.slice(1).replace(/\+/g, '%2B'));
  const t = viewer.timeline;
  const run = words.get('run');
  if (run && run !== runOf(viewer.overview)) {
    viewer.turnPanel();
    viewer.say('This address is of another run: what it names may not be in this one.');
  }
  const wanted = (words.get('views') || '').split('+').filter((name) => name);
  const shown = wanted.filter((name) => viewer.shownView(name));
  const known = wanted.filter((name) => viewer.overview.views.some((row) => row.name === name));
  // Those of the models are known a little later, and then this is done again.
  viewer.unknownViews = known.length < wanted.length;
  if (known.length) t.views = known;
  if (shown.length) viewer.fillViews();
  viewer.showChosen();
  const folded = words.get('folded');
  t.collapsed = folded === null ? foldedAtFirst(viewer.overview) : new Set(folded.split('\n').filter((key) => key));
  const order = words.get('order') || '';
  t.chosen = { order: Object.hasOwn(ORDERS, order) ? order : '', words: words.get('only') || '', top: (words.get('top') || '').split('\n').filter((key) => key) };
  viewer.only.value = t.chosen.words;
  viewer.order.value = t.chosen.order;
  t.setRowMode(words.get('rows') || 'fit');
  viewer.tall.value = t.rowMode;
  const [from, to] = [Number(words.get('from')), Number(words.get('to'))];
  if (words.has('from') && Number.isFinite(from) && Number.isFinite(to) && to > from) t.show(from, to);
  const y = Number(words.get('y'));
  if (Number.isFinite(y)) t.scroll(y - t.scrollY);
  viewer.wantedY = Number.isFinite(y) ? y : undefined;
  viewer.loadShown();
  const filter = words.get('where') || '';
  if (filter !== viewer.source.filter) {
    viewer.search.value = filter;
    viewer.highlight(filter);
  } else {
    // An earlier choice that is not answered yet is not in this address.
    viewer.highlights++;
  }
  const select = /^(\d+)-(\d+)$/.exec(words.get('select') || '');
  if (select) t.select(Number(select[1]), Number(select[2]));
  else if (t.selection) t.clearSelection();
}

/** @param {Viewer} viewer */
export async function copyLink(viewer) {
  viewer.turnPanel();
  writeAddress(viewer);
  await new Promise((resolve) => setTimeout(resolve, 150));
  const link = new URL(location.href);
  link.searchParams.set('token', viewer.source.token);
  viewer.panel.replaceChildren(element('p', {}, 'the address of this view (anyone who has it can read the trace while the viewer runs):'), element('code', { id: 'address' }, link.href));
  if (navigator.clipboard) await navigator.clipboard.writeText(link.href).catch(() => {});
}

/** Asks for the address that the server printed: it was started again since the link was made. @param {HTMLElement} page */
export function askForToken(page) {
  const field = /** @type {HTMLInputElement} */ (element('input', { id: 'token', size: 60, 'aria-label': 'Address or token', autocomplete: 'off' }));
  const open = () => {
    const token = /[0-9a-f]{32}/.exec(field.value);
    if (!token) { field.focus(); return; }
    const address = new URL(location.href);
    address.searchParams.set('token', token[0]);
    location.assign(address);
    // Only the part before the fragment makes the browser load the page.
    if (address.search === new URL(location.href).search) location.reload();
  };
  field.addEventListener('keydown', (event) => { if (event.key === 'Enter') open(); });
  page.replaceChildren(element('h1', {}, 'taskscope'),
    element('p', {}, 'This link is of a viewer that has ended. ', element('code', {}, 'taskscope view'), ' printed a new address when it was started again: paste it here, once for this browser.'),
    element('p', {}, field, ' ', element('button', { type: 'button', id: 'token-open', onclick: open }, 'open')));
  field.focus();
}
