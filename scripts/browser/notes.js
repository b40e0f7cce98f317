// Drives notes of the viewer, and links that are older than the server.
// Started by crates/view/tests/browser.rs with a folder that holds expected.json: an address, and a section.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, passed, ready, settled, startBrowser, step, until } from './browser.js';

const folder = process.argv[2];
const { address, token, section, stored } = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'));
const { page, problems, close } = await startBrowser({ width: 1200, height: 800 });
const timeline = (expression) => page.evaluate(`(() => { const t = window.taskscope.timeline; return ${expression}; })()`);
const notes = () => page.evaluate(() => [...document.querySelectorAll('#notes li p')].map((p) => p.textContent));
const old = address.replace(token, '0'.repeat(32));

await step('a link of an earlier server asks for the address once, and works from then on', async () => {
  await page.goto(`${old}#from=100&to=900`);
  await ready(page);
  assert.match(await page.textContent('#page'), /paste it here/);
  await page.fill('#token', `  ${address}`);
  await page.press('#token', 'Enter');
  await until(page, () => window.taskscope && document.documentElement.dataset.ready);
  assert.deepEqual(await timeline('[t.from, t.span]'), [100, 800]);
  await page.goto('about:blank');
  await page.goto(`${old}#from=200&to=900`);
  await ready(page);
  assert.deepEqual(await timeline('[t.from, t.span]'), [200, 700]);
  assert.ok(page.url().includes(token), 'the address is one of this server');
  // The browser reports each refused request.
  assert.ok(problems.every((problem) => problem.includes('401')), String(problems));
  problems.length = 0;
});
await step('the address has its run, and one of another run says so', async () => {
  await timeline('t.show(0, t.length)');
  await until(page, () => location.hash.includes('run='));
  assert.equal(await page.locator('#problem').count(), 0);
  await page.evaluate(() => { location.hash = location.hash.replace(/run=[0-9.]+/, 'run=1.2'); });
  await eventually(async () => assert.match(await page.textContent('#problem'), /another run/));
});
await step('a note on the opened section is written by keyboard, kept, and found again', async () => {
  await page.evaluate((section) => window.taskscope.timeline.reveal(section), section);
  await page.focus('canvas.timeline');
  await page.keyboard.press('b');
  await page.keyboard.type('late <b>because</b> of gemm');
  await page.keyboard.press('Control+Enter');
  await eventually(async () => assert.deepEqual(await notes(), ['late <b>because</b> of gemm']));
  const [kept] = JSON.parse(readFileSync(stored, 'utf8')).notes;
  assert.deepEqual([kept.from_ns, kept.to_ns, kept.text], [section.start, section.end, 'late <b>because</b> of gemm']);
  assert.ok(kept.row.startsWith('thread '), kept.row);
  await page.reload();
  await ready(page);
  await page.evaluate(() => window.taskscope.noted);
  await timeline('(t.clearSelection(), t.show(0, t.length))');
  await settled(page);
  // The flag above the rows tells the note, and opens it.
  const box = await page.locator('canvas.timeline').boundingBox();
  const x = box.x + (await timeline(`t.xOf(${section.start})`)) + 3;
  await page.mouse.move(x, box.y + 4);
  await eventually(async () => assert.equal(await page.textContent('#tip'), 'late <b>because</b> of gemm'));
  await page.mouse.click(x, box.y + 4);
  await eventually(async () => assert.deepEqual(await notes(), ['late <b>because</b> of gemm']));
  assert.equal(await page.locator('#notes b').count(), 0);
  await page.click('#notes button.link');
  const [from, span] = await timeline('[t.from, t.span]');
  assert.ok(from <= section.start && from + span >= section.end && span < (await timeline('t.length')), `${from} ${span}`);
});
await step('notes are saved as a file, removed, and loaded from the file', async () => {
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#notes-save')]);
  await download.saveAs(join(folder, 'sent.json'));
  await page.click('#notes li >> text=remove');
  await eventually(async () => assert.deepEqual(JSON.parse(readFileSync(stored, 'utf8')).notes, []));
  await until(page, () => !document.querySelector('#notes li'));
  await page.setInputFiles('#note-file', join(folder, 'sent.json'));
  await eventually(async () => assert.deepEqual(await notes(), ['late <b>because</b> of gemm']));
  assert.deepEqual(problems, []);
  writeFileSync(join(folder, 'wrong.json'), 'no notes');
  await page.setInputFiles('#note-file', join(folder, 'wrong.json'));
  await eventually(async () => assert.match(await page.textContent('#problem'), /wrong\.json is not a file of notes/));
});
assert.deepEqual(problems, []);
await close();
passed();
