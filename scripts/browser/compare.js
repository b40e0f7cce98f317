// Drives the comparison of two runs, as a file and from a server, and compares what it shows with the library's document.
// Started by crates/view/tests/browser.rs with a folder that holds compare.html and expected.json.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually, passed, ready, startBrowser, step, until } from './browser.js';

const folder = process.argv[2];
const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'));
const { difference, alignment, paths } = expected.comparison;

const one = await startBrowser({ width: 1440, height: 900 });
const { page } = one;
/** @param {string} expression of both timelines `two` */
const shown = (expression) => page.evaluate(`(() => { const { two } = window.taskscope; const [before, after] = two.timelines; return ${expression}; })()`);
/** The numbers of a table, by row. @param {string} caption */
const numbersOf = (caption) => page.evaluate((wanted) => {
  const table = [...document.querySelectorAll('table')].find((one) => one.caption?.textContent === wanted);
  return table && [...table.tBodies[0].rows].map((row) => [row.cells[0].textContent, ...[...row.cells].filter((cell) => cell.dataset.value !== undefined).map((cell) => Number(cell.dataset.value))]);
}, caption);

await page.goto(pathToFileURL(join(folder, 'compare.html')).href);
await ready(page);

await step('the verdict and the numbers of both sides are those of the comparison', async () => {
  assert.equal(await page.textContent('.verdict'), difference.verdict);
  const rows = difference.rows.filter((row) => row.group === 'run').map((row) => [row.label, row.difference, row.before, row.after]);
  assert.ok(rows.length > 2);
  assert.deepEqual(await numbersOf('The run'), rows);
  const causes = await numbersOf('Time by cause');
  assert.ok(causes.length > 1);
  for (const [label, change, before, after] of causes) {
    const row = difference.rows.find((known) => known.group === 'cause' && known.label === label);
    assert.deepEqual([change, before, after], [row.difference, row.before, row.after]);
  }
});
await step('both timelines have the same scale, and the shorter run ends before the other', async () => {
  assert.deepEqual(await shown('[before.span, after.span]'), [expected.longest, expected.longest]);
  const [pixels, other] = await shown('[before.nsPerPixel, after.nsPerPixel]');
  assert.ok(Math.abs(pixels / other - 1) < 0.01);
});
await step('a part is framed in both runs, and other places follow in proportion', async () => {
  assert.ok(alignment.parts.length > 1);
  for (const part of alignment.parts) {
    await page.evaluate((wanted) => window.taskscope.two.strip.frame(wanted), part);
    const [from, to, otherFrom, otherTo] = await shown('[before.from, before.from + before.span, after.from, after.from + after.span]');
    assert.ok(from <= part.before[0] && to >= part.before[1], `${from}..${to} has not ${part.before}`);
    assert.ok(otherFrom <= part.after[0] && otherTo >= part.after[1], `${otherFrom}..${otherTo} has not ${part.after}`);
  }
  await page.selectOption('#mode', 'parts');
  const [part] = alignment.parts;
  await shown(`before.show(${part.before[0]}, ${part.before[1]})`);
  const [from, to] = await shown('[after.from, after.from + after.span]');
  assert.ok(Math.abs(from - part.after[0]) < 50 && Math.abs(to - part.after[1]) < 50, `${from}..${to} is not ${part.after}`);
  // The other way round.
  await shown(`after.show(${part.after[0]}, ${part.after[1]})`);
  const [back, end] = await shown('[before.from, before.from + before.span]');
  assert.ok(Math.abs(back - part.before[0]) < 50 && Math.abs(end - part.before[1]) < 50);
});
await step('bands between the timelines lead from each part to its partner', async () => {
  await page.click('#whole');
  await eventually(async () => {
    const bands = await shown('(two.strip.draw(), two.strip.bands.map(({ part, top, bottom }) => [part.before, part.after, top.map((x, i) => Math.abs(x - before.xOf(part.before[i])) + Math.abs(bottom[i] - after.xOf(part.after[i])))]))');
    assert.ok(bands.length > 1);
    for (const [, , away] of bands) assert.ok(away.every((pixels) => pixels < 1));
  });
  const words = await shown('two.strip.wordsAt((two.strip.bands[0].top[0] + two.strip.bands[0].top[1]) / 2, 0)');
  assert.ok(words.includes('→'), words);
});
await step('call paths are as wide as their larger side, with the values of both', async () => {
  const drawn = await page.evaluate(() => [...document.querySelectorAll('.difference .frame')].map((bar) => [bar.title, bar.className, parseFloat(bar.style.width)]));
  const of = (name) => drawn.find(([title]) => title.startsWith(`${name}: `));
  assert.ok(of('all')[0].endsWith('(+200 ms)'), of('all')[0]);
  assert.deepEqual(['gone', 'grown', 'same', 'new'].map((name) => of(name)[1].split(' ')[1]), ['fell-much', 'grew', 'same', 'grew-much']);
  assert.ok(Math.abs(of('gone')[2] / of('new')[2] - 1 / 2) < 0.01);
  assert.deepEqual(paths.totals, [1e9, 1.2e9]);
});
await step('by keyboard alone a table is sorted, a part is framed and left, a path is enlarged, and the focus stays near', async () => {
  const focused = () => page.evaluate(() => [document.activeElement?.tagName, document.activeElement?.closest('[id]')?.id, document.activeElement?.className]);
  const press = async (/** @type {string} */ selector, key = 'Enter') => { await page.locator(selector).first().focus(); await page.keyboard.press(key); };
  await press('#causes thead button.sort');
  assert.equal(await page.locator('#causes thead th').first().getAttribute('aria-sort'), 'ascending');
  assert.equal((await focused())[2], 'sort');
  // A part is shown where it is; from there the keys of the timeline go on, and the button before it leads back.
  await press('#timelines button.link');
  assert.deepEqual(await focused(), ['CANVAS', 'timeline-before', 'timeline']);
  assert.ok(await shown('before.span < before.length'));
  await press('#whole');
  assert.ok(await shown('before.span >= before.length'));
  const bars = page.locator('.difference .frame');
  const name = await bars.nth(1).getAttribute('title');
  await bars.nth(1).focus();
  await page.keyboard.press('Enter');
  const now = await page.evaluate(() => [document.activeElement?.getAttribute('title'), /** @type {HTMLElement} */ (document.activeElement).style.width]);
  assert.deepEqual(now, [name, '100%']);
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  assert.ok((await page.evaluate(() => document.activeElement?.getAttribute('title')))?.startsWith('all: '));
  for (let i = 0; i < 2; i++) await press('#theme');
  assert.equal((await focused())[1], 'theme', 'other colours take no focus away');
});
await step('nothing is asked for by the file, and nothing is wrong', async () => {
  assert.deepEqual(one.problems, []);
  assert.deepEqual(one.requests.filter((url) => !url.startsWith('file:') && !url.startsWith('blob:')), []);
});
await step('a server shows sections of both runs, and each in its own viewer', async () => {
  await page.goto(expected.address);
  await ready(page);
  const [track] = await shown('[before.rows.find((row) => row.kind === "track")].map((row) => ({ ...row }))');
  await page.evaluate(async (row) => { await window.taskscope.two.tell(1, row, 20000); }, track);
  const words = await page.textContent('#section');
  assert.ok(words.startsWith('after: ') && words.includes(track.label), words);
  const link = await page.getAttribute('#section a', 'href');
  await page.goto(new URL(link, page.url()).href);
  await ready(page);
  await until(page, () => document.querySelector('#panel')?.textContent?.includes('after.trace'));
  assert.deepEqual(one.problems, []);
});
await step('a history has a line of each number, and names the runs at which it changed', async () => {
  const { history } = expected;
  await page.goto(pathToFileURL(join(folder, 'history.html')).href);
  await ready(page);
  assert.equal(await page.textContent('.verdict'), history.verdict);
  const wall = history.series.find((row) => row.name === 'wall_ns');
  assert.deepEqual(wall.changes.map((change) => change.run), [6]);
  const rows = await page.evaluate(() => [...document.querySelectorAll('#changes tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.equal(rows.length, history.series.flatMap((row) => row.changes).length);
  const [row] = rows.filter(([name]) => name === wall.label);
  assert.ok(row[1].startsWith('6.trace') && row[2] === '7' && row[3].includes('→'), row.join(' | '));
  assert.equal(await page.locator('#runs tbody tr').count(), 12);
  // The line of the wall time is drawn, and the pointer names a run.
  const chart = page.locator('#numbers canvas').first();
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width - 20, box.y + 60);
  await eventually(async () => assert.ok((await chart.getAttribute('title'))?.startsWith('11.trace'), await chart.getAttribute('title')));
  // The same numbers by keyboard, and a table is sorted by it.
  await chart.focus();
  for (const [key, run] of [['Home', 0], ['ArrowLeft', 0], ['ArrowRight', 1], ['End', 11]]) {
    await page.keyboard.press(/** @type {string} */ (key));
    const words = await chart.getAttribute('aria-valuetext');
    assert.ok(words?.startsWith(`${run}.trace`), `${key}: ${words}`);
    assert.equal(await page.textContent('#numbers figure p'), words);
  }
  await page.locator('#runs thead button.sort').first().focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.textContent('#runs tbody tr th'), '12');
  await page.focus('#theme');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'theme');
  assert.deepEqual(one.problems, []);
});
await one.close();
passed();
