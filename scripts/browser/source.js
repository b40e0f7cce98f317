// Drives the source pane of the viewer.
// Started by crates/view/tests/browser.rs with a folder that holds expected.json: an address, and the library's answer.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, passed, ready, startBrowser, step, until } from './browser.js';

const { address, answer } = JSON.parse(readFileSync(join(process.argv[2], 'expected.json'), 'utf8'));
const { page, problems, close } = await startBrowser({ width: 1200, height: 800 });
const chosen = () => page.evaluate(() => Number(document.querySelector('#panel .source .chosen')?.dataset.line));
await page.goto(address);
await ready(page);

await step('the file with most time is shown at its hottest line, as text', async () => {
  await page.keyboard.press('c');
  await until(page, () => document.querySelector('#panel .source'));
  assert.equal(await page.textContent('#source-title'), 'gemm.c');
  assert.equal(await chosen(), 5000);
  const seen = await page.evaluate(() => {
    const row = document.querySelector('#panel .source .chosen');
    const [box, panel] = [row.getBoundingClientRect(), document.getElementById('panel').getBoundingClientRect()];
    return { text: row.querySelector('.code').textContent, inSight: box.top >= panel.top && box.bottom <= panel.bottom, rows: document.querySelectorAll('#panel .source tbody tr').length, bold: document.querySelectorAll('#panel .source b').length };
  });
  assert.deepEqual(seen, { text: '\tline<b>5000</b> \ufffd= 5000;', inSight: true, rows: answer.lines.length, bold: 0 });
  const cells = await page.evaluate(() => [...document.querySelectorAll('#panel .source thead th')].map((th) => th.textContent));
  assert.deepEqual(cells, ['line', 'work', 'blamed', 'source']);
  const times = await page.evaluate(() => [5000, 5001, 5002].map((line) => [...document.querySelectorAll(`[data-line="${line}"] td.number`)].map((td) => td.textContent)));
  const format = (ns) => page.evaluate((ns) => window.taskscope.formatTime(ns), ns);
  assert.deepEqual(times, [[await format(350), ''], ['', await format(answer.heat[1].blamed_ns)], [await format(100), '']]);
  assert.match(await page.textContent('#panel'), /changed after the run/);
});
await step('keys go from one line with time to the next, and around', async () => {
  await page.focus('#hot-next');
  for (const line of [5001, 5002, 5000]) {
    await page.keyboard.press('Enter');
    assert.equal(await chosen(), line);
  }
  assert.match(await page.textContent('#live'), /^line 5000: work /);
});
await step('a file that is not found says so, and its lines have their time', async () => {
  await page.selectOption('#source-file', '/build/src/gone.c');
  await eventually(async () => assert.match(await page.textContent('#source-missing'), /gone\.c: it is not below .*--source-path/));
  assert.equal(await chosen(), 7);
  await page.selectOption('#source-file', '/etc/passwd');
  await eventually(async () => assert.match(await page.textContent('#source-missing'), /passwd: it is not below/));
  assert.ok(!(await page.textContent('#panel')).includes('root:'));
});
await step('machine code without samples in the cache says so', async () => {
  await page.click('#machine-code');
  await eventually(async () => assert.match(await page.textContent('#assembly-missing'), /no samples: taskscope view --no-cache/));
  await page.click('#assembly-source');
  await until(page, () => document.querySelector('#source-title'));
});
assert.deepEqual(problems, []);
await close();
passed();
