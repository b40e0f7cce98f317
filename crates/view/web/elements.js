// Small builders of page elements. Names from a trace only ever become text, never markup.

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

/** Captions of tables of which all rows were asked for: they stay open when the page is built anew. @type {Set<string>} */
const opened = new Set();

/** Rows of a table that are printed at most. */
const ROWS_ON_PAPER = 60;

/**
 * A table; columns with `number` are aligned right, those with `value` have it as `data-value`, which tests read. Rows beyond `shown` wait behind a button; on paper, where
 * nobody can press it, more are shown at once, and how many are missing.
 * @param {string} caption
 * @param {{title: string, number?: boolean, value?: (row: any) => number | null, cell: (row: any) => Node | string}[]} columns
 * @param {any[]} rows
 * @param {number} shown
 * @returns {HTMLElement}
 */
export function table(caption, columns, rows, shown = 12) {
  const body = element('tbody', {});
  const add = (from, to) => {
    for (const row of rows.slice(from, to)) {
      body.append(element('tr', {}, ...columns.map((column, i) =>
        element(i === 0 ? 'th' : 'td', { class: column.number ? 'number' : null, scope: i === 0 ? 'row' : null, 'data-value': column.value ? column.value(row) : null }, column.cell(row)))));
    }
  };
  const printed = isPrinting();
  const first = printed ? Math.max(shown, ROWS_ON_PAPER) : opened.has(caption) ? rows.length : shown;
  add(0, first);
  const head = element('tr', {}, ...columns.map((column) => element('th', { scope: 'col', class: column.number ? 'number' : null }, column.title)));
  const made = element('table', {}, element('caption', {}, caption), element('thead', {}, head), body);
  const wrapped = element('div', { class: 'table' }, made);
  if (rows.length > first && printed) {
    wrapped.append(element('p', { class: 'note' }, `Not printed: ${rows.length - first} more row${rows.length - first === 1 ? '' : 's'}.`));
  } else if (rows.length > first) {
    const more = element('button', { type: 'button', onclick: () => {
      opened.add(caption);
      add(first, rows.length);
      more.remove();
      // Who came by keyboard goes on where the button was.
      const next = /** @type {HTMLElement} */ (body.children[first]);
      next.tabIndex = -1;
      next.focus();
    } }, `all ${rows.length} rows`);
    wrapped.append(more);
  }
  return wrapped;
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
