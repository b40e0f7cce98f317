// Who communicates with whom: a cell for each pair of processes, darker the more there is.

import { element } from './elements.js';
import { formatCount, formatTime } from './format.js';
import { isPrinting } from './paper.js';
import { table, timeColumn } from './table.js';

/** Processes of a drawn matrix at most; of more there is a table. */
const DRAWN_PROCESSES = 48;

/** What a cell shows. @type {[string, string, (cell: any) => number, (value: number) => string][]} */
const MEASURES = [
  ['bytes', 'bytes', (cell) => cell.bytes, formatCount],
  ['messages', 'messages', (cell) => cell.messages, formatCount],
  ['wait', 'waiting', (cell) => cell.wait_ns, formatTime],
];

/** The measure that was chosen; it stays when the page is built anew. */
const matrixLook = { measure: 'bytes' };

/** @param {{rank: number | null, pid: number}} process */
const processWords = (process) => (process.rank === null ? `process ${process.pid}` : `rank ${process.rank}`);

/**
 * The matrix with its table; null without communication.
 * @param {any} matrix
 * @returns {HTMLElement | null}
 */
export function communicationMatrix(matrix) {
  if (!matrix || matrix.cells.length === 0) return null;
  const { processes, cells } = matrix;
  const host = element('div', { class: 'matrix' });
  const draw = () => {
    const [, , valueOf, show] = MEASURES.find(([name]) => name === matrixLook.measure) || MEASURES[0];
    const most = Math.max(1, ...cells.map(valueOf));
    const byPair = new Map(cells.map((cell) => [`${cell.from} ${cell.to}`, cell]));
    const short = (process) => (process.rank === null ? String(process.pid) : String(process.rank));
    const cellOf = (from, to) => {
      const cell = byPair.get(`${from} ${to}`);
      const value = cell ? valueOf(cell) : 0;
      const made = element('td', { class: 'number', 'data-value': value, title: `${processWords(processes[from])} → ${processWords(processes[to])}: ${show(value)}` }, value ? show(value) : '');
      // The square root shows small parts too.
      if (value) made.style.background = `color-mix(in srgb, var(--matrix) ${Math.round(Math.sqrt(value / most) * 100)}%, transparent)`;
      return made;
    };
    host.replaceChildren(element('table', {}, element('caption', {}, 'Communication'),
      element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, 'from \\ to'), ...processes.map((process) => element('th', { scope: 'col', class: 'number', title: processWords(process) }, short(process))))),
      element('tbody', {}, ...processes.map((process, from) => element('tr', {}, element('th', { scope: 'row', title: processWords(process) }, short(process)), ...processes.map((_, to) => cellOf(from, to)))))));
  };
  const choice = /** @type {HTMLSelectElement} */ (element('select', { class: 'measure', 'aria-label': 'Measure of the matrix', onchange: () => { matrixLook.measure = choice.value; draw(); } }, ...MEASURES.map(([name, label]) => element('option', { value: name }, label))));
  choice.value = matrixLook.measure;
  const isDrawn = processes.length <= DRAWN_PROCESSES;
  if (isDrawn) draw();
  const pairs = table('Pairs of processes', [
    { title: 'from (late)', cell: (row) => processWords(processes[row.from]) }, { title: 'to (waiting)', cell: (row) => processWords(processes[row.to]) },
    { title: 'messages', number: true, value: (row) => row.messages, cell: (row) => formatCount(row.messages) }, { title: 'bytes', number: true, value: (row) => row.bytes, cell: (row) => formatCount(row.bytes) },
    timeColumn('waited', (row) => row.wait_ns, formatTime),
  ], [...cells].sort((a, b) => b.wait_ns - a.wait_ns || b.bytes - a.bytes), 6);
  return element('div', { id: 'matrix' }, isDrawn && !isPrinting() ? element('p', {}, choice) : '', isDrawn ? element('p', { class: 'note' }, 'From the process of a row to that of a column; of waiting, the process of a column waits for that of a row.') : '', isDrawn ? host : '', pairs, matrix.left_out ? element('p', { class: 'note' }, `Omitted: ${formatCount(matrix.left_out)} pairs with less.`) : '');
}
