// Charts of the report: legend, stacked states over time, histograms, small timelines, flame graph.

import { colourAs, element, replaceButtons, sharpCanvas } from './elements.js';
import { ABSENT, BLANK, cssColour } from './palette.js';
import { barText, formatCount, formatNumberOf, formatPercent, formatPoint, formatTime, fitText } from './format.js';
import { isPrinting } from './paper.js';
import { CODE, trackLabel } from './rows.js';

/** Groups of states from the bottom of a stack to its top; from `causes.toml`. @type {string[]} */
export const GROUP_ORDER = [];

/**
 * Numbers of the states, those of one group together.
 * @param {{group: string}[]} states
 * @returns {number[]}
 */
export function stackOrder(states) {
  return GROUP_ORDER.flatMap((group) => states.map((state, number) => (state.group === group ? number : -1)).filter((number) => number >= 0));
}

/**
 * The states that occur, in the order of a stack, with their colours; those in which a thread is not there are one, at the end.
 * @param {{name: string, label: string, group: string}[]} states
 * @param {(name: string) => boolean} occurs
 * @param {import('./palette.js').Theme} theme
 * @returns {{name: string, label: string, colour: string}[]}
 */
export function namedColours(states, occurs, theme) {
  const seen = stackOrder(states).filter((number) => occurs(states[number].name));
  const there = seen.filter((number) => !ABSENT.includes(states[number].name));
  const absent = { name: '', label: 'blank: no thread there (not started, ended)', colour: BLANK };
  return [...there.map((number) => ({ name: states[number].name, label: states[number].label, colour: theme.state[number] })), ...(there.length < seen.length ? [absent] : [])];
}

/**
 * The meaning of colours, for states that occur, and of patterns that do.
 * @param {{name: string, label: string, group: string}[]} states
 * @param {(name: string) => boolean} occurs
 * @param {import('./palette.js').Theme} theme
 * @param {(mark: string) => boolean} [isMarked] whether a pattern occurs
 * @param {(name: string) => void} [pick] what a click on a state does
 * @returns {HTMLElement}
 */
export function legend(states, occurs, theme, isMarked = () => true, pick = undefined) {
  const list = element('ul', { class: 'legend', 'aria-label': 'Colours' });
  for (const { name, label, colour } of namedColours(states, occurs, theme)) {
    const swatch = element('span', { class: 'swatch' });
    colourAs(swatch, colour);
    list.append(element('li', {}, ...(pick && name ? [element('button', { type: 'button', 'data-state': name, title: `highlight: ${label}`, onclick: () => pick(name) }, swatch, label)] : [swatch, label])));
  }
  for (const [name, label] of [['lost', 'events lost'], ['uncertain', 'not known'], ['long', 'long wait'], ['finding', 'finding'], ['off', 'had no CPU']]) {
    if (isMarked(name)) list.append(element('li', {}, element('span', { class: `swatch mark-${name}` }), label));
  }
  return list;
}

/** Values that a legend names. */
const NAMED_VALUES = 24;

/**
 * Names of the values of a view that are in sight, those with most room first chosen, in the order of the view.
 * @param {any} words
 * @param {(value: number) => number} colour
 * @param {Map<number, number>} inSight how many pixels show each
 * @param {(label: string) => void} [pick] what a click on a value does
 */
export function valueLegend(words, colour, inSight, pick = undefined) {
  const room = ([value]) => inSight.get(value) || 0;
  const seen = words.values.filter((row) => row[0] !== 0 && room(row) > 0);
  const named = new Set([...seen].sort((a, b) => room(b) - room(a)).slice(0, NAMED_VALUES));
  const rows = seen.filter((row) => named.has(row)).map(([value, label]) => {
    const swatch = element('span', { class: 'swatch' });
    swatch.style.background = cssColour(colour(value));
    const name = fitText(label, 40);
    return element('li', {}, ...(pick ? [element('button', { type: 'button', 'data-value-name': label, title: `highlight: ${label.slice(0, 2000)}`, onclick: () => pick(label) }, swatch, name)] : [swatch, name]));
  });
  const more = seen.length - rows.length;
  const pale = { nested: 'no recorded wait or range', [CODE]: 'blocked, or no sample' }[words.name];
  if (pale && rows.length) rows.push(element('li', {}, element('span', { class: 'swatch there' }), `pale: ${pale}`));
  // On a small screen it is one line, which keys move where no name is a button.
  return element('ul', { class: 'legend', 'aria-label': words.label, tabindex: pick ? null : 0 }, element('li', {}, element('strong', {}, fitText(words.isOfSamples ? words.label.split(',')[0] : words.label, 60))), ...rows, more > 0 ? element('li', {}, `and ${formatCount(more)} more visible`) : null);
}

/**
 * How many workers were in each state over time, stacked.
 * @param {{buckets: number, states: number, workers: number, data: number[]}} stack in thousandths
 * @param {{name: string, label: string, group: string}[]} states
 * @param {import('./palette.js').Theme} theme
 * @param {number} width
 * @param {number} lengthNs
 * @returns {HTMLElement}
 */
export function stackChart(stack, states, theme, width, lengthNs) {
  const height = isPrinting() ? 100 : 160;
  const left = 40;
  const { canvas, context } = sharpCanvas(width, height + 20, 'Workers by state over time');
  const order = stackOrder(states);
  const perBucket = (width - left) / stack.buckets;
  for (let bucket = 0; bucket < stack.buckets; bucket++) {
    let below = 0;
    for (const state of order) {
      const share = stack.data[bucket * stack.states + state] / 1000 / Math.max(1, stack.workers);
      if (share <= 0) continue;
      context.fillStyle = theme.state[state];
      const top = height * (1 - below - share);
      context.fillRect(left + bucket * perBucket, top, perBucket + 0.6, height * share + 0.3);
      below += share;
    }
  }
  context.fillStyle = theme.text;
  context.font = '11px system-ui, sans-serif';
  context.textAlign = 'right';
  for (const part of [0, 0.5, 1]) context.fillText(stack.workers === 1 ? String(part) : formatCount(stack.workers * part), left - 6, Math.max(9, height * (1 - part) + 4));
  context.textAlign = 'left';
  context.fillText('0', left, height + 14);
  context.textAlign = 'right';
  context.fillText(formatTime(lengthNs), width - 2, height + 14);
  return element('figure', { class: 'chart' }, canvas, element('figcaption', {}, `workers in each state over time; ${formatNumberOf(stack.workers, 'worker')} in all`));
}

/**
 * A histogram of times in classes of a quarter octave.
 * @param {[number, number][]} classes lower limit in nanoseconds, count
 * @param {import('./palette.js').Theme} theme
 * @returns {HTMLElement}
 */
export function histogram(classes, theme) {
  const width = 140;
  const height = 26;
  if (classes.length === 0) return element('span', {}, '–');
  const place = (ns) => 4 * Math.log2(Math.max(1, ns));
  const low = place(classes[0][0]);
  const high = place(classes[classes.length - 1][0]) + 1;
  const most = Math.max(...classes.map((row) => row[1]));
  const words = `from ${formatTime(classes[0][0])} to ${formatTime(classes[classes.length - 1][0] * 1.19)}; most are near ${formatTime((classes.find((row) => row[1] === most) || classes[0])[0])}`;
  const { canvas, context } = sharpCanvas(width, height, words);
  canvas.title = words;
  context.fillStyle = theme.state[0];
  const perClass = Math.min(12, width / Math.max(1, high - low));
  for (const [ns, count] of classes) {
    const tall = Math.max(1, (height - 1) * (count / most));
    context.fillRect((place(ns) - low) * perClass, height - tall, Math.max(1, perClass - 0.5), tall);
  }
  return canvas;
}

/**
 * The exact sections of some threads in a short time.
 * @param {{from: number, to: number, start: number, end: number, whole: boolean, tracks: {track: number, tid: number, name?: string, kind: string, worker: boolean, sections: [number, number, number][], uncertain: [number, number][]}[]}} instance
 * @param {{label: string, name: string}[]} states
 * @param {import('./palette.js').Theme} theme
 * @param {number} width
 * @returns {HTMLElement}
 */
export function smallTimeline(instance, states, theme, width) {
  const row = 12;
  const left = 92;
  const height = instance.tracks.length * row + 18;
  const x = (ns) => left + ((width - left) * (ns - instance.from)) / Math.max(1, instance.to - instance.from);
  const { canvas, context } = sharpCanvas(width, height, `${instance.tracks.map(trackLabel).join(', ')} from ${formatTime(instance.from)} to ${formatTime(instance.to)}`);
  instance.tracks.forEach((track, line) => {
    const stripe = (start, end) => {
      context.fillStyle = theme.page;
      for (let at = x(start); at < x(end); at += 4) context.fillRect(at, line * row, 1, row - 2);
    };
    for (const [start, end, state] of track.sections) {
      context.fillStyle = theme.state[state];
      context.fillRect(x(start), line * row, Math.max(0.5, x(end) - x(start)), row - 2);
      if (states[state].name === 'unknown') stripe(start, end);
    }
    for (const [start, end] of track.uncertain) stripe(start, end);
    context.fillStyle = theme.text;
    context.font = '10px system-ui, sans-serif';
    context.textAlign = 'right';
    context.fillText(fitText(trackLabel(track), 16), left - 5, line * row + 9);
  });
  context.strokeStyle = theme.marks.finding;
  context.lineWidth = 2;
  context.strokeRect(x(instance.start), 0, Math.max(2, x(instance.end) - x(instance.start)), row - 2);
  context.fillStyle = theme.text;
  context.textAlign = 'left';
  context.fillText(formatPoint(instance.from, (instance.to - instance.from) / 100), left, height - 5);
  context.textAlign = 'right';
  context.fillText(formatPoint(instance.to, (instance.to - instance.from) / 100), width - 2, height - 5);
  const words = `worst instance: ${formatTime(instance.end - instance.start)} at ${formatPoint(instance.start, (instance.to - instance.from) / 100)}${instance.whole ? '' : '; each pixel shows the state with most time'}`;
  return element('figure', { class: 'chart' }, canvas, element('figcaption', {}, words));
}

/** Bars narrower than this part of the whole are left out. */
const NARROWEST = 0.001;
const BAR_HEIGHT = 19;
/** Bars below each other on paper at most. */
const DEPTH_ON_PAPER = 12;

/**
 * Call paths as an icicle: what was called below its caller, as wide as its time. A click makes a bar as
 * wide as the chart; its callers stay above it. A path is a list of names, outermost first.
 * @param {{path: string[], ns: number}[]} paths
 * @param {boolean} bottomUp what was called above, its callers below
 * @param {(value: number) => string} format
 * @param {{path: string[]}} kept the bar that is as wide as the chart, by its names from the first row on; chosen again when the chart is built anew
 * @param {number} pixels the width of the chart
 * @returns {HTMLElement}
 */
export function icicle(paths, bottomUp, format, kept, pixels) {
  const root = { name: 'all', ns: 0, depth: 0, left: 0, above: null, below: new Map() };
  for (const { path, ns } of paths) {
    let node = root;
    node.ns += ns;
    for (const name of bottomUp ? [...path].reverse() : path) {
      let next = node.below.get(name);
      if (!next) node.below.set(name, (next = { name, ns: 0, depth: node.depth + 1, left: 0, above: node, below: new Map() }));
      next.ns += ns;
      node = next;
    }
  }
  const host = element('div', { class: 'icicle', role: 'group', 'aria-label': `call paths, ${bottomUp ? 'bottom-up' : 'top-down'}` });
  const show = (focus) => {
    kept.path = [];
    for (let node = focus; node.above; node = node.above) kept.path.unshift(node.name);
    const made = [];
    let deepest = 0;
    const place = (node, left, width) => {
      const label = `${node.name}: ${format(node.ns)}, ${formatPercent(node.ns, root.ns)}`;
      const bar = element('button', { type: 'button', class: `frame shade${node.depth % 4}`, title: label.slice(0, 2000), 'aria-label': fitText(label, 300), onclick: () => show(node) }, barText(node.name, formatPercent(node.ns, root.ns), width * pixels));
      bar.style.left = `${left * 100}%`;
      bar.style.width = `${width * 100}%`;
      bar.style.top = `${node.depth * BAR_HEIGHT}px`;
      deepest = Math.max(deepest, node.depth);
      made.push(bar);
    };
    const placeBelow = (node, left, width) => {
      place(node, left, width);
      let at = left;
      for (const next of [...node.below.values()].sort((a, b) => b.ns - a.ns)) {
        const wide = (width * next.ns) / Math.max(1, node.ns);
        if (wide < NARROWEST) break;
        placeBelow(next, at, wide);
        at += wide;
      }
    };
    const callers = [];
    for (let node = focus.above; node; node = node.above) callers.unshift(node);
    callers.forEach((node) => place(node, 0, 1));
    placeBelow(focus, 0, 1);
    host.style.height = `${(isPrinting() ? Math.min(deepest + 1, DEPTH_ON_PAPER) : deepest + 1) * BAR_HEIGHT}px`;
    replaceButtons(host, made, made[focus.depth]);
  };
  let chosen = root;
  for (const name of kept.path) chosen = chosen.below.get(name) || chosen;
  show(chosen);
  return host;
}
