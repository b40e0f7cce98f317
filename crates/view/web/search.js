// The search: next and previous match, their number, what is highlighted.

import { element } from './elements.js';
import { formatNumberOf, formatTime, fitText } from './format.js';
import { CODE } from './rows.js';
import { showCode } from './code_panel.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/** Highlights a state, or nothing where it is highlighted. @param {Viewer} viewer @param {string} name */
export function pickState(viewer, name) {
  const text = `state=${name}`;
  const isOn = viewer.source.filter === text;
  viewer.search.value = isOn ? '' : text;
  highlightMatches(viewer, isOn ? '' : text);
}

/** Shows pale what does not match, everything again for no text. @param {Viewer} viewer @param {string} text */
export async function highlightMatches(viewer, text) {
  const turn = ++viewer.highlights;
  try {
    if (text) await viewer.source.json('filter', { where: text });
  } catch (error) {
    if (turn === viewer.highlights) viewer.say(error);
    return;
  }
  // A late answer must not replace a newer choice.
  if (turn !== viewer.highlights) return;
  viewer.source.filter = text;
  viewer.source.forget();
  viewer.where.setAttribute('aria-pressed', String(Boolean(text)));
  viewer.timeline.changed();
}

/** @param {Viewer} viewer @param {'next' | 'previous'} step */
export async function findMatch(viewer, step) {
  const text = viewer.search.value.trim();
  if (!text) { viewer.search.focus(); return; }
  const goesOn = viewer.timeline.marked && text === viewer.searched;
  const at = goesOn ? viewer.timeline.marked.start : Math.max(0, Math.floor(viewer.timeline.from) - (step === 'next' ? 1 : 0));
  viewer.searched = text;
  // Others may start in the same nanosecond on other rows. Rows of model views are no threads.
  const { view, track } = goesOn ? viewer.timeline.marked : {};
  const row = goesOn && (!view || ['devices', CODE].includes(view)) ? { track, view: view || 'state' } : {};
  const ask = (step) => viewer.source.json('search', { text, at, step, ...row });
  const end = step === 'next' ? 'first' : 'last';
  const isNewest = viewer.turnPanel();
  let found, around = '';
  try {
    // What begins with the run begins after nothing.
    found = await ask(!goesOn && step === 'next' && viewer.timeline.from <= 0 ? end : step);
    if (!found) {
      found = await ask(end);
      around = found ? `nothing ${step === 'next' ? 'after' : 'before'} ${formatTime(at)} matches: from the ${step === 'next' ? 'beginning' : 'end'} again` : '';
    }
  } catch (error) {
    viewer.say(error);
    return;
  }
  if (!isNewest()) return;
  viewer.found = found;
  if (!found) {
    const isFilter = /[=<>~]|\.\./.test(text);
    viewer.live.textContent = `nothing matches${isFilter && viewer.overview.devices.rows.length ? '; filters apply to threads, words to device queues too' : ''}`;
    viewer.panel.replaceChildren(element('p', { id: 'nothing' }, viewer.live.textContent));
    tellTotals(viewer, text);
    return;
  }
  tellTotals(viewer, text);
  viewer.timeline.reveal(found);
  if (found.view === CODE) showCode(viewer, found);
  else if (found.view) viewer.showOperation(found);
  else await viewer.showSection(found, isNewest);
  if (around && isNewest()) {
    viewer.live.textContent = around;
    viewer.panel.prepend(element('p', { id: 'around', class: 'note' }, around));
  }
}

/** Tells how many matches there are and their time, or similar searches where there is none. @param {Viewer} viewer @param {string} text */
async function tellTotals(viewer, text) {
  if (viewer.totals?.text !== text) {
    viewer.matches.textContent = '…';
    const totals = await viewer.source.json('totals', { text }).catch(() => null);
    if (!totals || text !== viewer.searched) return;
    viewer.totals = { text, ...totals };
  }
  const { sections, ns, operations, code, code_ns: codeNs, hints, bare_times: bare } = viewer.totals;
  const counts = [...(sections || !(operations || code) ? [`${formatNumberOf(sections, 'section')}${sections ? `, ${formatTime(ns)}` : ''}`] : []), ...(operations ? [formatNumberOf(operations, 'operation')] : []),
    ...(code ? [`${formatNumberOf(code, 'stretch', 'stretches')} of code, ${formatTime(codeNs)}`] : [])];
  viewer.matches.textContent = [...counts, ...(bare.length ? [`${bare.join(', ')} without a unit: ns`] : [])].join('; ');
  const nothing = document.getElementById('nothing');
  if (!hints.length || !nothing) return;
  const go = (hint) => element('button', { type: 'button', class: 'link', onclick: () => { viewer.search.value = hint; findMatch(viewer, 'next'); } }, fitText(hint, 80));
  nothing.after(element('p', { id: 'hints' }, 'Did you mean: ', ...hints.flatMap((hint, at) => [at ? ', ' : '', go(hint)])));
}

/** Dims what is not of this place or type; the same name again ends that. @param {Viewer} viewer @param {string} name */
export async function highlightName(viewer, name) {
  // A name with signs of the filter language is a quoted text in it.
  // It knows no escapes; where both quotation marks are in the name, the name is looked for as words.
  const quote = ['"', "'"].find((mark) => !name.includes(mark));
  const text = quote && /[=<>~()]/.test(name) ? `place = ${quote}${name}${quote} or type = ${quote}${name}${quote}` : name;
  viewer.search.value = text;
  await highlightMatches(viewer, viewer.source.filter === text ? '' : text);
}
