// The call paths of two runs as one flame graph: as wide as the larger side, coloured by the change.

import { element, replaceButtons } from './elements.js';
import { fitText } from './format.js';
import { isPrinting } from './paper.js';

/** Bars narrower than this part of the whole are left out. */
const LEAST_WIDTH = 0.0015;
const FRAME_HEIGHT = 19;
/** Rows of bars on paper at most. */
const ROWS_ON_PAPER_OF_FLAMES = 12;
/** Classes of change: a share of the larger side, from which a bar has the class. */
const MUCH = 0.4;
const SOME = 0.05;

/**
 * @typedef {{name: string, own: [number, number], sums: [number, number], wide: number, depth: number, above: Frame | null, below: Map<string, Frame>}} Frame
 */

/**
 * The tree of joined paths. A frame is as wide as the larger of its own values and its callees together, so that all fit below it.
 * @param {{names: string[], rows: {path: number[], own: [number, number]}[]}} paths
 * @returns {Frame}
 */
export function joinedTree(paths) {
  /** @type {(name: string, above: Frame | null) => Frame} */
  const frame = (name, above) => ({ name, own: [0, 0], sums: [0, 0], wide: 0, depth: above ? above.depth + 1 : 0, above, below: new Map() });
  const root = frame('all', null);
  for (const { path, own } of paths.rows) {
    let node = root;
    for (const number of path) {
      const name = paths.names[number];
      let next = node.below.get(name);
      if (!next) node.below.set(name, (next = frame(name, node)));
      node = next;
    }
    node.own = [node.own[0] + own[0], node.own[1] + own[1]];
  }
  const sum = (/** @type {Frame} */ node) => {
    node.sums = [node.own[0], node.own[1]];
    node.wide = Math.max(...node.own);
    for (const next of node.below.values()) {
      sum(next);
      node.sums = [node.sums[0] + next.sums[0], node.sums[1] + next.sums[1]];
      node.wide += next.wide;
    }
  };
  sum(root);
  return root;
}

/** The class of a change, for its colour; the words are in the bar's title. @param {[number, number]} sums @param {number} whole the larger total */
export function changeClass([before, after], whole) {
  const difference = after - before;
  const share = Math.abs(difference) / Math.max(before, after, 1);
  // A change that is nothing of the run has no colour.
  if (share < SOME || Math.abs(difference) < whole / 1000) return 'same';
  if (difference > 0) return share >= MUCH ? 'grew-much' : 'grew';
  return share >= MUCH ? 'fell-much' : 'fell';
}

/**
 * A differential flame graph. A click makes a bar as wide as the chart.
 * @param {any} paths
 * @param {(value: number) => string} format
 * @returns {HTMLElement}
 */
export function flameDifference(paths, format) {
  const root = joinedTree(paths);
  const whole = Math.max(...root.sums);
  const host = element('div', { class: 'icicle difference', role: 'group', 'aria-label': 'changes of call paths, callers above their callees' });
  const words = (/** @type {Frame} */ node) => {
    const difference = node.sums[1] - node.sums[0];
    return `${node.name}: ${format(node.sums[0])} → ${format(node.sums[1])} (${difference < 0 ? '−' : '+'}${format(Math.abs(difference))})`;
  };
  const show = (/** @type {Frame} */ focus) => {
    /** @type {HTMLElement[]} */
    const made = [];
    let deepest = 0;
    const place = (/** @type {Frame} */ node, /** @type {number} */ left, /** @type {number} */ wide) => {
      const label = words(node);
      const bar = element('button', { type: 'button', class: `frame ${changeClass(node.sums, whole)}`, title: label.slice(0, 2000), 'aria-label': fitText(label, 300), onclick: () => show(node) }, fitText(label, 160));
      Object.assign(bar.style, { left: `${left * 100}%`, width: `${wide * 100}%`, top: `${node.depth * FRAME_HEIGHT}px` });
      deepest = Math.max(deepest, node.depth);
      made.push(bar);
    };
    const placeBelow = (/** @type {Frame} */ node, /** @type {number} */ left, /** @type {number} */ wide) => {
      place(node, left, wide);
      let at = left;
      for (const next of [...node.below.values()].sort((a, b) => b.wide - a.wide)) {
        const room = (wide * next.wide) / Math.max(1, node.wide);
        if (room < LEAST_WIDTH) break;
        placeBelow(next, at, room);
        at += room;
      }
    };
    const callers = [];
    for (let node = focus.above; node; node = node.above) callers.unshift(node);
    callers.forEach((node) => place(node, 0, 1));
    placeBelow(focus, 0, 1);
    host.style.height = `${(isPrinting() ? Math.min(deepest + 1, ROWS_ON_PAPER_OF_FLAMES) : deepest + 1) * FRAME_HEIGHT}px`;
    replaceButtons(host, made, made[focus.depth]);
  };
  show(root);
  return host;
}

/** What the colours of the flame graph mean. */
export function flameLegend() {
  const classes = [['grew-much', `grew by ${MUCH * 100} % of the larger side or more, or is new`], ['grew', 'grew'], ['same', 'about the same'], ['fell', 'fell'], ['fell-much', `fell by ${MUCH * 100} % or more, or is gone`]];
  return element('ul', { class: 'legend', 'aria-label': 'Colours of changes' }, ...classes.map(([name, label]) => element('li', {}, element('span', { class: `swatch ${name}` }), label)));
}
