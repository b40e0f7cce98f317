// Small builders of page elements. Names from a trace only ever become text, never markup.

import { fitText } from './format.js';
import { BLANK } from './palette.js';
import { PAPER_RATIO, isPrinting } from './paper.js';

/**
 * An element with attributes and children; `on…` attributes are listeners, strings become text.
 * @param {string} tag
 * @param {{[name: string]: any}} attributes
 * @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/**
 * A sentence of at most `width` characters as nodes: parts between backticks become code.
 * @param {string} text
 * @param {number} width
 * @returns {(Node | string)[]}
 */
export function codeText(text, width) {
  // An opening backtick without a closing one is a character like others.
  const parts = fitText(text, width).split(/`([^`]+)`/);
  return parts.map((part, i) => (i % 2 ? element('code', {}, part) : part)).filter((part) => part !== '');
}

/** Names longer than this are cut on screen; their whole text is the element's title. */
export const NAME = 120;

/** @param {string | null | undefined} text @returns {HTMLElement} */
export function nameOf(text) {
  const whole = text || '–';
  return element('span', { class: 'name', title: whole.length > NAME ? whole.slice(0, 2000) : null }, fitText(whole, NAME));
}

/**
 * A number of the page with its path in the JSON, which tests read.
 * @param {string} path
 * @param {number | null | undefined} value
 * @param {(value: number) => string} format
 */
export function number(path, value, format) {
  return element('span', { 'data-path': path, 'data-value': value === null || value === undefined ? '' : value }, value === null || value === undefined ? '–' : format(value));
}

/** Gives a part of a page the colour of a state; what has none has a frame. @param {HTMLElement} made @param {string} colour */
export function colourAs(made, colour) {
  made.style.background = colour;
  if (colour === BLANK) made.classList.add('blank');
}

/**
 * A bar of a share of its cell.
 * @param {number} share 0 to 1
 * @param {string} [label]
 * @param {string} [colour]
 * @returns {HTMLElement}
 */
export function bar(share, label = '', colour = '') {
  const fill = element('span', { class: 'fill' });
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  if (colour) colourAs(fill, colour);
  return element('span', { class: 'bar', role: 'img', 'aria-label': label || `${(share * 100).toFixed(0)} %` }, fill);
}

/**
 * A section of the page with its heading.
 * @param {string} id
 * @param {string} title
 * @param {...(Node | string | null)} children
 * @returns {HTMLElement}
 */
export function part(id, title, ...children) {
  return element('section', { id, 'aria-labelledby': `${id}-title` }, element('h2', { id: `${id}-title` }, title), ...children);
}

/**
 * A canvas as sharp as the screen.
 * @param {number} width CSS pixels
 * @param {number} height
 * @param {string} label for those who do not see it
 * @returns {{canvas: HTMLCanvasElement, context: CanvasRenderingContext2D}}
 */
export function sharpCanvas(width, height, label) {
  const canvas = /** @type {HTMLCanvasElement} */ (element('canvas', { role: 'img', 'aria-label': label }));
  const ratio = isPrinting() ? PAPER_RATIO : window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.scale(ratio, ratio);
  return { canvas, context };
}

/** Puts other buttons into a place; if the focus was in it, it goes to one of them. @param {HTMLElement} host @param {HTMLElement[]} made @param {HTMLElement | undefined} focused */
export function replaceButtons(host, made, focused) {
  const hadFocus = host.contains(document.activeElement);
  host.replaceChildren(...made);
  if (hadFocus) focused?.focus({ preventScroll: true });
}
