// Tables: sorted by a click on a title, filtered by words, copied as CSV.
//
// Rows keep the order of the report until a title is chosen. How a table is sorted, filtered and unfolded is kept by its caption, so that
// it survives other colours, another size and paper. CSV has all rows that pass the filter, times as whole nanoseconds.

import { element } from './elements.js';
import { saveFile } from './files.js';
import { isPrinting } from './paper.js';

/**
 * A column: `value` is its number, `ns` whether that is nanoseconds; without a value a column has words, which are many if it is wide. A column without a
 * title is a picture.
 * @typedef {{title: string, number?: boolean, ns?: boolean, wide?: boolean, value?: (row: any) => number | null | undefined, cell: (row: any) => Node | string}} Column
 */

/** How tables are looked at, by caption. @type {Map<string, {column: number, down: boolean, words: string, open: boolean}>} */
const looks = new Map();

/** Rows of a table that are printed at most. */
const ROWS_ON_PAPER = 8;
/** Characters of a title of one line. */
const SHORT_TITLE = 14;
/** Tables with more rows than this have a filter. */
const FEW_ROWS = 5;

/** A column of times. @param {string} title @param {(row: any) => number | null | undefined} value @param {(ns: number) => string} show @returns {Column} */
export function timeColumn(title, value, show) {
  return { title, number: true, ns: true, value, cell: (row) => shownOr(value(row), show) };
}

/** @param {number | null | undefined} value @param {(value: number) => string} show */
function shownOr(value, show) {
  return value === null || value === undefined ? '–' : show(value);
}

/** The words of a cell. @param {Column} column @param {any} row @returns {string} */
function wordsOf(column, row) {
  const made = column.cell(row);
  if (typeof made === 'string') return made;
  // A name that is cut has all of it as its title.
  const whole = made instanceof HTMLElement && made.title;
  return whole || made.textContent || '';
}

/** What a column is sorted by: a number, or words; null for nothing, which is last. @param {Column} column @param {any} row @returns {number | string | null} */
function keyOf(column, row) {
  if (column.value) return column.value(row) ?? null;
  const words = wordsOf(column, row);
  if (words === '' || words === '–') return null;
  if (!column.number) return words;
  const value = parseFloat(words.replace(/[\u202f\u00a0]/g, '').replace('−', '-'));
  return Number.isNaN(value) ? words : value;
}

/** @param {number | string | null} a @param {number | string | null} b @param {boolean} down */
function compareKeys(a, b, down) {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  const order = typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en', { numeric: true });
  return down ? -order : order;
}

/** A field of CSV. A name from a trace that a spreadsheet would compute becomes text. @param {string} text */
function csvField(text) {
  const inert = /^[=+\-@\t\r]/.test(text) && !/^-?[\d.]+$/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

/** Rows as CSV, with a line of titles. @param {Column[]} columns @param {any[]} rows @returns {string} */
export function csvOf(columns, rows) {
  const named = columns.filter((column) => column.title);
  const titles = named.map((column) => (column.ns ? `${column.title.replace(/^(worker|CPU|thread|queue)-(s|ms|µs)$/, '$1-time')} (ns)` : column.title));
  const cells = rows.map((row) => named.map((column) => {
    const value = column.value ? column.value(row) : undefined;
    return typeof value === 'number' ? String(value) : wordsOf(column, row);
  }));
  return [titles, ...cells].map((line) => `${line.map(csvField).join(',')}\r\n`).join('');
}

/** Puts text on the clipboard, or into a file where the browser gives no clipboard. @param {string} text @param {string} name @returns {Promise<string>} what was done */
async function copyText(text, name) {
  try {
    await navigator.clipboard.writeText(text);
    return 'copied';
  } catch {
    saveFile(name, new Blob([text], { type: 'text/csv' }));
    return 'saved as a file';
  }
}

/**
 * A table; columns with `number` are aligned right, those with `value` have it as `data-value`, which tests read. Rows beyond `shown` are behind a button;
 * on paper their number is printed instead. A tree keeps the order of its rows.
 * @param {string} caption
 * @param {Column[]} columns
 * @param {any[]} rows
 * @param {number} shown
 * @param {{isTree?: boolean}} options
 * @returns {HTMLElement}
 */
export function table(caption, columns, rows, shown = 12, { isTree = false } = {}) {
  const look = looks.get(caption) || { column: -1, down: true, words: '', open: false };
  looks.set(caption, look);
  const printed = isPrinting();
  const body = element('tbody', {});
  const more = element('button', { type: 'button', class: 'more' });
  const left = element('p', { class: 'note', role: 'status' });
  const titles = columns.map((column, i) => {
    const sorts = !isTree && !printed && column.title && rows.length > 1;
    const title = sorts ? element('button', { type: 'button', class: 'sort', title: 'sort', onclick: () => sortBy(i) }, column.title) : column.title;
    // A column without a title has pictures of another one.
    const classes = [column.number ? 'number' : '', column.title.length > SHORT_TITLE ? 'long' : ''].filter((name) => name).join(' ');
    return element(title ? 'th' : 'td', { scope: title ? 'col' : null, class: classes || null }, title);
  });
  const passing = () => {
    const wanted = look.words.toLowerCase().split(/\s+/).filter((word) => word);
    const passed = wanted.length === 0 ? rows : rows.filter((row) => {
      const words = columns.map((column) => wordsOf(column, row)).join(' ').toLowerCase();
      return wanted.every((word) => words.includes(word));
    });
    const column = columns[look.column];
    if (!column || isTree) return passed;
    return passed.map((row) => ({ row, key: keyOf(column, row) })).sort((a, b) => compareKeys(a.key, b.key, look.down)).map(({ row }) => row);
  };
  const fill = () => {
    const all = passing();
    const most = printed ? Math.min(shown, ROWS_ON_PAPER) : look.open ? all.length : shown;
    body.replaceChildren(...all.slice(0, most).map((row) => element('tr', {}, ...columns.map((column, i) =>
      element(i === 0 ? 'th' : 'td', { class: column.number ? 'number' : column.wide ? 'words' : null, scope: i === 0 ? 'row' : null, 'data-value': column.value ? column.value(row) : null }, column.cell(row))))));
    titles.forEach((title, i) => {
      if (i === look.column && !isTree) title.setAttribute('aria-sort', look.down ? 'descending' : 'ascending');
      else title.removeAttribute('aria-sort');
    });
    const hidden = all.length - body.children.length;
    more.textContent = `all ${all.length} rows`;
    more.hidden = hidden <= 0;
    const filtered = look.words.trim() ? `${all.length} of ${rows.length} rows contain “${look.words.trim()}”. ` : '';
    left.textContent = printed && hidden > 0 ? `${filtered}Not printed: ${hidden} more row${hidden === 1 ? '' : 's'}.` : filtered;
    left.hidden = !left.textContent;
  };
  /** @param {number} i */
  const sortBy = (i) => {
    // Numbers begin with the largest, words with the first letter.
    const begin = Boolean(columns[i].number);
    Object.assign(look, { down: look.column === i ? !look.down : begin, column: i });
    fill();
  };
  more.addEventListener('click', () => {
    const first = body.children.length;
    look.open = true;
    fill();
    // Who came by keyboard goes on where the button was.
    const next = /** @type {HTMLElement} */ (body.children[first]);
    next.tabIndex = -1;
    next.focus();
  });
  fill();
  const made = element('table', {}, element('caption', {}, caption), element('thead', {}, element('tr', {}, ...titles)), body);
  if (printed) return element('div', { class: 'table' }, made, left);
  const filter = !isTree && rows.length > FEW_ROWS ? element('input', { type: 'search', placeholder: 'filter', 'aria-label': `Filter ${caption}`, value: look.words, oninput: (event) => {
    look.words = event.target.value;
    fill();
  } }) : null;
  const copy = element('button', { type: 'button', class: 'copy', 'aria-label': `Copy ${caption} as CSV`, onclick: async () => {
    copy.textContent = await copyText(csvOf(columns, passing()), `${caption.replace(/[^\w]+/g, '-')}.csv`);
    setTimeout(() => { copy.textContent = 'copy as CSV'; }, 2000);
  } }, 'copy as CSV');
  // What is wider than the screen is scrolled by keys; a longer table has buttons that take the focus.
  const scrolls = rows.length > 1 ? {} : { tabindex: 0, role: 'region', 'aria-label': caption };
  return element('div', { class: 'table', ...scrolls }, made, element('div', { class: 'tools' }, more, filter, rows.length > 1 ? copy : null), left);
}
