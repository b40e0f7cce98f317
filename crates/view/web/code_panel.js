// The panel of code by samples: the path of a sample, the samples around it, and the shares of its function.

import { codeTitle } from './details.js';
import { bar, element, nameOf } from './elements.js';
import { formatCount, formatNumberOf, formatPercent, formatStart, formatTime, fitText } from './format.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/**
 * Shows a bar of code by samples, or a time beside bars.
 * @param {Viewer} viewer
 * @param {any} found
 */
export function showCode(viewer, found) {
  const { sample, samples, shares, around, start, end } = found;
  const lasts = end - start;
  viewer.panel.replaceChildren(element('h2', { id: 'code-title' }, fitText(codeTitle(found), 120)),
    viewer.facts([['thread', viewer.trackName(found.thread)], ['from', formatStart(start, lasts)], ['lasts', formatTime(lasts)],
      ...(samples ? [['samples', formatCount(samples)]] : []), ...(sample && sample.file ? [['line', nameOf(`${sample.file.split('/').pop()}:${sample.line}`)]] : [])]),
    element('p', { class: 'note' }, 'Samples are taken for time: each stands for the time of its thread since the one before.'),
    element('button', { type: 'button', onclick: () => viewer.timeline.select(start, end) }, 'select its time (m)'), ' ',
    sample && sample.file ? element('button', { type: 'button', id: 'its-source', onclick: () => viewer.showSource() }, 'source (c)') : '',
    sample ? pathOf(sample, lasts) : '', shares ? sharesOf(shares) : '', around ? aroundOf(around) : '');
  viewer.timeline.edges = [];
  viewer.timeline.redraw();
  viewer.live.textContent = fitText(`${codeTitle(found)}, ${formatTime(lasts)}`, 300);
}

/** The path of a sample, outermost first. @param {any} sample @param {number} lasts */
function pathOf({ at, ns, path }, lasts) {
  const step = ({ name, place }) => element('li', {}, nameOf(name), place ? element('span', { class: 'place' }, ` ${fitText(place, 60)}`) : '');
  return element('div', { id: 'code-path' }, element('h3', {}, `Path of the sample at ${formatStart(at, Math.min(lasts, ns))}, for ${formatTime(ns)}`),
    path.length ? element('ol', { class: 'path' }, ...path.map(step)) : element('p', {}, 'Its path is not known.'));
}

/** The shares of a function in the samples of its thread, and in all. @param {any[]} shares */
function sharesOf([own, all]) {
  const cell = (ns, of) => element('td', { class: 'number' }, formatTime(ns), ' ', element('span', { class: 'note' }, formatPercent(ns, of)));
  const row = (title, key) => element('tr', {}, element('th', { scope: 'row' }, title), cell(own[key], own.all_ns), cell(all[key], all.all_ns));
  return element('table', { id: 'code-shares' }, element('caption', {}, 'Its share of the time by samples'),
    element('thead', {}, element('tr', {}, element('td', {}), element('th', { scope: 'col', class: 'number' }, 'of the thread'), element('th', { scope: 'col', class: 'number' }, 'of all'))),
    element('tbody', {}, row('in it', 'own_ns'), row('with what it calls', 'total_ns')));
}

/** The functions of the samples around a time. @param {any} around */
function aroundOf({ from, to, samples, functions }) {
  const row = ([name, count]) => element('li', {}, nameOf(name), ' ', element('span', { class: 'number' }, formatCount(count)), ' ', bar(count / samples, `${formatCount(count)} of ${formatCount(samples)} samples`));
  return element('div', { id: 'code-around' }, element('h3', {}, `${formatNumberOf(samples, 'sample')} around it, in ${formatTime(to - from)} from ${formatStart(from, to - from)} on`), element('ul', {}, ...functions.map(row)));
}
