// Many runs in their order: wall time, efficiency and causes per run, and where they changed.

import { element, nameOf, part, sharpCanvas } from './elements.js';
import { formatCount, formatDate, formatNumberOf, formatTime, fitText } from './format.js';
import { cssColour, makeTheme, orderedColour } from './palette.js';
import { isPrinting, keepingFocus, onPaper } from './paper.js';
import { saveButton } from './report.js';
import { table } from './table.js';
import { readJson } from './source.js';

/** Height of a chart, and room beside and below it, pixels. */
const CHART = 150;
const LEFT_ROOM = 70;
const LOW_ROOM = 20;
/** Series of a chart at most. */
const LINES = 6;

/** @typedef {{group: string, name: string, label: string, values: (number | null)[], changes: {run: number, before: number, after: number, chance: number}[]}} Series */

/** How values of a series are shown. @param {Series} series */
const showOf = (series) => (series.group === 'efficiency' ? (/** @type {number} */ value) => value.toFixed(3) : formatTime);

/** A run in words. @param {any} history @param {number} run */
function runWords(history, run) {
  const { name, start_unix_ns: start } = history.runs[run];
  return `${fitText(name, 80)}${start ? `, ${formatDate(start)}` : ''}`;
}

/** A change in words. @param {any} change @param {(value: number) => string} show */
function stepWords({ before, after }, show) {
  const growth = before > 0 ? ` (${after < before ? '−' : '+'}${Math.abs((after / before - 1) * 100).toFixed(1)} %)` : '';
  return `${show(before)} → ${show(after)}${growth}`;
}

/** A chance in words. @param {number} chance */
const chanceWords = (chance) => (chance < 0.001 ? '<0.1 %' : `${(chance * 100).toFixed(1)} %`);

/**
 * Lines of several series over the runs; a change is a dashed line at the first run of the new level, with the medians on both sides.
 * @param {any} history
 * @param {Series[]} rows
 * @param {string[]} colours
 * @param {import('./palette.js').Theme} theme
 * @param {number} width
 * @param {string} title
 */
function linesChart(history, rows, colours, theme, width, title) {
  const { canvas, context } = sharpCanvas(width, CHART + LOW_ROOM, `${title}: ${rows.map((row) => row.label).join(', ')}`);
  const count = history.runs.length;
  const isShare = rows[0].group === 'efficiency';
  const largest = isShare ? 1 : Math.max(1, ...rows.flatMap((row) => row.values.map((value) => value ?? 0)));
  const x = (/** @type {number} */ run) => LEFT_ROOM + ((width - LEFT_ROOM - 12) * (run + 0.5)) / count;
  const y = (/** @type {number} */ value) => 6 + (CHART - 12) * (1 - value / largest);
  const show = showOf(rows[0]);
  context.font = '11px system-ui, sans-serif';
  context.strokeStyle = theme.marks.same;
  context.fillStyle = theme.text;
  context.textAlign = 'right';
  for (const share of [0, 0.5, 1]) {
    context.globalAlpha = 0.35;
    context.lineWidth = 0.5;
    context.beginPath();
    context.moveTo(LEFT_ROOM, y(share * largest));
    context.lineTo(width - 8, y(share * largest));
    context.stroke();
    context.globalAlpha = 1;
    context.fillText(share === 0 ? '0' : show(share * largest), LEFT_ROOM - 6, y(share * largest) + 4);
  }
  rows.forEach((row, i) => {
    context.strokeStyle = colours[i];
    context.fillStyle = colours[i];
    context.lineWidth = 1.5;
    context.beginPath();
    let isBroken = true;
    row.values.forEach((value, run) => {
      // A run without the number breaks the line.
      if (value === null) { isBroken = true; return; }
      if (isBroken) context.moveTo(x(run), y(value));
      else context.lineTo(x(run), y(value));
      isBroken = false;
    });
    context.stroke();
    row.values.forEach((value, run) => {
      if (value === null || count > (width - LEFT_ROOM) / 4) return;
      context.beginPath();
      context.arc(x(run), y(value), 2.5, 0, 7);
      context.fill();
    });
    for (const { run } of row.changes) {
      context.setLineDash([4, 3]);
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x(run - 0.5), 0);
      context.lineTo(x(run - 0.5), CHART);
      context.stroke();
      context.setLineDash([]);
    }
  });
  context.fillStyle = theme.text;
  context.textAlign = 'left';
  context.fillText(fitText(history.runs[0].name, 40), LEFT_ROOM, CHART + 14);
  context.textAlign = 'right';
  if (count > 1) context.fillText(fitText(history.runs[count - 1].name, 40), width - 8, CHART + 14);
  const wordsOfRun = (/** @type {number} */ run) => [runWords(history, run), ...rows.map((row) => `${row.label}: ${row.values[run] === null ? '–' : show(/** @type {number} */ (row.values[run]))}`)];
  canvas.addEventListener('pointermove', (event) => {
    const run = Math.max(0, Math.min(count - 1, Math.floor(((event.offsetX - LEFT_ROOM) / (width - LEFT_ROOM - 12)) * count)));
    canvas.title = wordsOfRun(run).join('\n');
  });
  // The same by keys: of the run that was gone to last.
  const said = element('p', { class: 'note', hidden: true });
  let at = count - 1;
  /** @param {number} run */
  const goTo = (run) => {
    at = Math.max(0, Math.min(count - 1, run));
    const words = wordsOfRun(at).join('; ');
    for (const [name, value] of Object.entries({ 'aria-valuenow': at + 1, 'aria-valuetext': words })) canvas.setAttribute(name, String(value));
    said.textContent = words;
  };
  if (!isPrinting()) {
    for (const [name, value] of Object.entries({ role: 'slider', tabindex: 0, 'aria-valuemin': 1, 'aria-valuemax': count })) canvas.setAttribute(name, String(value));
    goTo(at);
    canvas.addEventListener('keydown', (event) => {
      /** @type {{[key: string]: number}} */
      const places = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: count - 1 };
      if (!(event.key in places) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      said.hidden = false;
      goTo(places[event.key]);
    });
  }
  const names = rows.map((row, i) => {
    const swatch = element('span', { class: 'swatch' });
    swatch.style.background = colours[i];
    return element('li', {}, swatch, fitText(row.label, 80));
  });
  return element('figure', { class: 'chart' }, element('figcaption', {}, title), canvas, said, rows.length > 1 ? element('ul', { class: 'legend', 'aria-label': title }, ...names) : '');
}

/**
 * Fills the page with a history.
 * @param {HTMLElement} page
 * @param {string} json
 */
export function showHistory(page, json) {
  const history = readJson(json);
  const media = matchMedia('(prefers-color-scheme: dark)');
  const root = document.documentElement;
  const ofGroup = (/** @type {string} */ group) => history.series.filter((row) => row.group === group);
  const build = keepingFocus(page, () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : media.matches;
    const theme = makeTheme(dark, []);
    const width = Math.max(300, Math.min(1200, page.clientWidth - 32));
    const colours = Array.from({ length: LINES }, (_, i) => cssColour(orderedColour(theme, i)));
    const chart = (/** @type {Series[]} */ rows, /** @type {string} */ title) => (rows.length && history.runs.length ? linesChart(history, rows.slice(0, LINES), colours, theme, width, title) : null);
    const changes = history.series.flatMap((row) => row.changes.map((change) => ({ ...change, row })));
    const facts = (/** @type {number} */ run) => history.runs[run].changed_facts.map(([name, value]) => `${name}: ${value}`).join('; ');
    const wall = history.series.find((row) => row.name === 'wall_ns');
    const parallel = history.series.find((row) => row.name === 'parallel');
    const parts = [
      part('changes', 'Changes', changes.length ? table('Changes of level', [
        { title: 'number', cell: ({ row }) => nameOf(row.label) }, { title: 'first run of the new level', cell: ({ run }) => nameOf(runWords(history, run)) },
        { title: 'run', number: true, value: ({ run }) => run + 1, cell: ({ run }) => formatCount(run + 1) },
        { title: 'medians', number: true, value: ({ before, after }) => after - before, cell: (change) => stepWords(change, showOf(change.row)) },
        { title: 'chance', number: true, value: ({ chance }) => chance, cell: ({ chance }) => chanceWords(chance) },
        { title: 'changed in the run itself', cell: ({ run }) => nameOf(facts(run)) },
      ], changes.sort((a, b) => a.run - b.run), 20) : element('p', {}, 'No change was found.'), ...history.notes.map((note) => element('p', { class: 'note' }, fitText(note, 400)))),
      part('numbers', 'Numbers over the runs', chart(wall ? [wall] : [], 'wall time'), chart(ofGroup('efficiency').filter((row) => row.name === 'parallel' || row.values.some((value) => value !== null && value < 0.9995)), 'efficiency'), chart(ofGroup('cause'), 'worker time by cause: those with most time'),
        chart(ofGroup('finding'), 'findings: those with most time'), chart(ofGroup('task_type'), 'mean task of a type: the longest')),
      part('runs', 'Runs', table('Runs', [
        { title: 'run', number: true, value: ({ run }) => run + 1, cell: ({ run }) => formatCount(run + 1) }, { title: 'trace', cell: ({ run }) => nameOf(history.runs[run].name) }, { title: 'started', cell: ({ run }) => (history.runs[run].start_unix_ns ? formatDate(history.runs[run].start_unix_ns) : '–') },
        ...[...(wall ? [wall] : []), ...(parallel ? [parallel] : []), ...ofGroup('cause').slice(0, 4)].map((row) => ({ title: row.label, number: true, ns: row.group !== 'efficiency', value: ({ run }) => row.values[run], cell: ({ run }) => (row.values[run] === null ? '–' : showOf(row)(row.values[run])) })),
        { title: 'changed in the run itself', cell: ({ run }) => (run === 0 ? '' : nameOf(facts(run))) },
      ], history.runs.map((_, run) => ({ run })), 30), history.left_out ? element('p', { class: 'warn' }, `Omitted to keep this file small: the last ${formatNumberOf(history.left_out, 'run')}.`) : null),
      part('how', 'How it was computed', element('p', {}, `Runs are in the order ${history.is_by_start ? 'of their starts' : 'given'}. A change is the split of a series whose ranks before and after differ most, if permutations of the series reach that in at most 1 % of all cases and the medians differ by 1 % or more. `,
        saveButton(json, 'history.json', 'save the history as JSON'))),
    ];
    const toggle = element('button', { type: 'button', id: 'theme', onclick: () => {
      root.dataset.theme = dark ? 'light' : 'dark';
      build();
    } }, dark ? 'light' : 'dark');
    page.replaceChildren(element('header', {}, element('h1', {}, 'taskscope history'), element('nav', { 'aria-label': 'Parts' }, ...[['changes', 'Changes'], ['numbers', 'Numbers'], ['runs', 'Runs'], ['how', 'How']].map(([id, title]) => element('a', { href: `#${id}` }, title))), toggle),
      element('p', { class: 'verdict' }, fitText(history.verdict, 600)), ...parts);
  });
  build();
  media.addEventListener('change', build);
  onPaper(build, build);
  let width = page.clientWidth;
  window.addEventListener('resize', () => {
    if (Math.abs(page.clientWidth - width) > 40) { width = page.clientWidth; build(); }
  });
  return { history };
}
