// Drives reports of unusual runs: parts, names without an end, threads that are not there, device queues alone.
// Started by crates/view/tests/browser.rs with a folder that holds pages, report.json and expected.json: addresses, and the library's answers.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually, passed, ready, startBrowser, step, until } from './browser.js';

const [folder] = process.argv.slice(2);
/** The second queue of the traces of queues alone: of the sixty marks over one letter three are left. */
const PILED = 'que\u0301\u0301\u0301ue\n2';

/** Waits until a picture that has another size has it on the screen: what hangs at the pointer goes then. @param {import('playwright-core').Page} page */
const twoFrames = (page) => page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));

const one = await startBrowser({ width: 1200, height: 900 });
await step('a page of a part says so, and names threads of which the filter lets no event pass', async () => {
  await one.page.goto(pathToFileURL(join(folder, 'part.html')).href);
  await ready(one.page);
  assert.match(await one.page.textContent('#what'), /part of it--where 'thread = 1000'; points in time count from its begin/);
  const names = await one.page.evaluate(() => [...document.querySelectorAll('.finding canvas')].map((canvas) => canvas.getAttribute('aria-label')));
  assert.ok(names.length > 0 && names.every((name) => /^thread \d+, thread \d+, /.test(name)), names.join('\n'));
  assert.equal(await one.page.evaluate(() => window.taskscope.timeline.overview.tracks.length), 1);
});
await step('names without an end do not widen the page', async () => {
  for (const width of [1200, 400]) {
    await one.page.setViewportSize({ width, height: 900 });
    await one.page.goto(pathToFileURL(join(folder, 'long.html')).href);
    await ready(one.page);
    const wide = await one.page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= width, `${wide} of ${width}`);
  }
});
await step('where a thread is not there the legend says that it is blank, in a frame that is seen', async () => {
  for (const [dark, name] of [[false, 'light'], [true, 'dark']]) {
    await one.page.emulateMedia({ colorScheme: name });
    const [labels, swatch, line, page] = await eventually(() => one.page.evaluate(() => {
      const parts = [...document.querySelectorAll('#overview .legend[aria-label="Colours"] li')];
      const blank = parts.find((part) => part.textContent.startsWith('blank')).querySelector('.swatch');
      const style = getComputedStyle(blank);
      return [parts.map((part) => part.textContent), style.backgroundColor, [style.borderTopWidth, style.borderTopStyle, style.borderTopColor], getComputedStyle(document.body).backgroundColor];
    }));
    assert.equal(page === 'rgb(20, 23, 26)', dark);
    assert.ok(labels.includes('blank: no thread there (not started, ended)') && !labels.includes('not started') && !labels.includes('ended'), labels.join());
    assert.equal(swatch, 'rgba(0, 0, 0, 0)');
    assert.deepEqual(line.slice(0, 2), ['1px', 'solid']);
    const light = (colour) => colour.match(/\d+/g).slice(0, 3).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0.05);
    const contrast = Math.max(light(line[2]), light(page)) / Math.min(light(line[2]), light(page));
    assert.ok(contrast >= 3, `${name}: ${contrast}`);
    assert.ok((await one.page.locator('#tables .bar.states .fill.blank').count()) > 0, 'their bars in the table of threads');
  }
  await one.page.emulateMedia({ colorScheme: 'light' });
});
await step('labels lie within their room', async () => {
  const words = await one.page.evaluate(() => {
    const t = window.taskscope.timeline;
    t.context.font = '11px system-ui, sans-serif';
    return ['W'.repeat(100000), 'short', '\u{1f600}'.repeat(50)].map((label) => { const words = t.fitLabel(label, 100); return [words, t.context.measureText(words).width]; });
  });
  for (const [text, wide] of words) assert.ok(wide <= 100 && text.length > 4 && text.isWellFormed(), `${text} ${wide}`);
  assert.equal(words[1][0], 'short');
});
await step('a trace of device queues alone tells nothing of workers', async () => {
  await one.page.setViewportSize({ width: 1200, height: 900 });
  await one.page.goto(pathToFileURL(join(folder, 'devices.html')).href);
  await ready(one.page);
  assert.deepEqual(await one.page.evaluate(() => [...document.querySelectorAll('main > section')].map((e) => e.id)), ['what', 'efficiency', 'findings', 'overview', 'tables', 'how']);
  assert.ok((await one.page.textContent('#efficiency')).includes('no worker time'));
  assert.equal(await one.page.evaluate(() => [...document.querySelectorAll('table')].filter((t) => t.tBodies[0].rows.length === 0).length), 0, 'an empty table');
  const rows = await one.page.evaluate(() => window.taskscope.timeline.rows.map((row) => row.label));
  assert.deepEqual(rows, ['device queues', 'queue 1 lane 0', 'queue 1 lane 1', PILED, 'counters', ...rows.slice(5)]);
  // The three names that operations have, once each, whatever the queue.
  const values = await one.page.evaluate(() => window.taskscope.timeline.overview.views.find((view) => view.rows).values);
  const named = await until(one.page, () => document.querySelector('#overview [aria-label="device queues"]')?.textContent);
  assert.ok(['gemm_kernel', '<i>copy</i>', 'fill'].every((name) => named.includes(name)), named);
  assert.deepEqual(values.map(([, name]) => name), ['gemm_kernel\ufffd', '<i>copy</i>', 'fill']);
  await one.page.locator('#overview canvas').scrollIntoViewIfNeeded();
  const canvas = await one.page.locator('#overview canvas').boundingBox();
  const middle = await one.page.evaluate(() => window.taskscope.timeline.yOf(window.taskscope.timeline.rows[1]));
  const titles = [];
  for (let x = 160; x < canvas.width; x += 7) {
    await one.page.mouse.move(canvas.x + x, canvas.y + middle);
    titles.push(await one.page.evaluate(() => document.querySelector('.timeline-host').title));
  }
  const words = /^queue 1 lane 0 at 0\.\d+ s: (nothing|(mostly (nothing, shortly )?)?(gemm_kernel\ufffd|<i>copy<\/i>|fill))$/;
  for (const title of titles) assert.ok(words.test(title), title);
  for (const end of [': nothing', 'gemm_kernel\ufffd', '<i>copy</i>', 'fill']) assert.ok(titles.some((title) => title.startsWith('queue 1 lane 0 at 0.') && title.endsWith(end)), `${end}: ${titles.slice(0, 9)}`);
  await one.page.evaluate(() => { const t = window.taskscope.timeline; t.toggleRow(t.rows[0]); });
  // The picture is lower now, and so is the page.
  await twoFrames(one.page);
  const lower = await one.page.locator('#overview canvas').boundingBox();
  await one.page.mouse.move(lower.x + 30, lower.y + 24 + 9);
  const folded = await one.page.evaluate(() => document.querySelector('.timeline-host').title);
  assert.ok(/^device queues at 0\.\d+ s: 3 rows folded, mostly (gemm_kernel\ufffd|<i>copy<\/i>|fill|nothing) \(in /.test(folded), folded);
  const { devices } = JSON.parse(await one.page.textContent('#report'));
  const remarks = devices.queues.flatMap((queue) => queue.remarks);
  const told = await one.page.evaluate(() => [...document.querySelectorAll('#tables .notices li')].map((li) => li.textContent));
  assert.ok(remarks.length > 0 && told.length === remarks.length && remarks.every((remark, i) => told[i].endsWith(remark)), `${told} of ${remarks}`);
  const what = await one.page.textContent('#what');
  for (const words of ['time of the queues', 'lost device operations1', 'not complete: see the notices', 'a note for a test']) assert.ok(what.includes(words), `${words}: ${what}`);
  assert.ok(!what.includes('wall time'), 'queues alone have no wall time');
});
assert.deepEqual(one.problems, []);
await one.close();
passed();
