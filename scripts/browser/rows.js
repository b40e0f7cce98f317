// Drives the rows of the viewer: device queues and nested sections below their threads, counters, code by samples.
// Started by crates/view/tests/browser.rs with a folder that holds talking.html, sampled.html and expected.json.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually, passed, ready, settled, startBrowser, step } from './browser.js';

const folder = process.argv[2];
const { talking, sampled, walker } = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'));
const one = await startBrowser({ width: 1440, height: 900 });
const { page } = one;
/** @param {string} expression of the timeline `t` and the viewer `v` */
const timeline = (expression) => page.evaluate(`(() => { const v = window.taskscope; const t = v.timeline; return ${expression}; })()`);
const labels = () => timeline("t.rows.filter((row) => row.kind !== 'counter').map((row) => row.label)");
const counters = () => timeline("t.rows.filter((row) => row.counter).map((row) => row.label)");
const open = async (/** @type {string} */ address) => {
  await page.goto('about:blank');
  await page.goto(address);
  await ready(page);
  await page.evaluate(() => Promise.all([window.taskscope.models, window.taskscope.nested]));
  await settled(page);
};

await step('a queue is below the thread that submits to it, others are in a group of their own', async () => {
  await open(talking.address);
  const threads = ['process 17 (rank 0)', 'thread 17', '└ queue 2', 'process 18 (rank 1)', 'thread 18'];
  const alone = ['device queues', 'queue 1 lane 0', 'queue 1 lane 1'];
  const all = ['workers by state', 'threads: state', ...threads, ...alone];
  const own = async () => (await labels()).filter((label) => label !== 'counters');
  assert.deepEqual(await own(), all);
  assert.deepEqual(await counters(), ['bytes sent, not received', 'queue 1: submitted, not begun', 'queue 2: submitted, not begun']);
  await page.selectOption('#order', 'nth');
  assert.deepEqual(await own(), ['workers by state', 'threads: state', 'rank 0, 17', '└ queue 2', 'rank 1, 18', ...alone]);
  await page.selectOption('#order', '');
  await page.fill('#only', 'queue');
  assert.deepEqual(await own(), ['workers by state', 'threads: state (0 of 2 rows)', 'device queues', 'queue 1 lane 0', 'queue 1 lane 1', 'rank 0, 17, queue 2']);
  await page.fill('#only', '');
});
await step('a section lists what it submitted, with arrows to the row of the queue', async () => {
  const { first, count } = talking.section.submissions;
  assert.ok(first.length > 10 && count > first.length, `${first.length} of ${count}`);
  await page.evaluate(async () => { const v = window.taskscope; await v.open(v.timeline.rowOf(0), 20000); });
  const edges = await timeline("t.edges.filter((edge) => edge.kind === 'submission').map((edge) => [edge.from, edge.to, edge.toView, edge.toTrack])");
  assert.deepEqual(edges, first.map(({ submitted, start, row }) => [submitted, start, 'devices', row]));
  assert.equal(await timeline("t.rowOfPlace({ track: 2, view: 'devices' }).label"), '└ queue 2');
  const words = await page.textContent('#submissions');
  assert.ok(words.includes(`${count - first.length} more`), words);
});
await step('a queue below a folded process is unfolded when something in it is shown', async () => {
  const all = await labels();
  await page.evaluate(() => { const t = window.taskscope.timeline; t.toggleRow(t.rows.find((row) => row.kind === 'process')); });
  assert.ok(!(await labels()).includes('└ queue 2'));
  await page.evaluate(() => window.taskscope.timeline.reveal({ view: 'devices', track: 2, start: 1000, end: 2000 }));
  assert.deepEqual(await labels(), all);
});
await step('a thread without recorded states is folded until something in it is shown', async () => {
  const all = await labels();
  await page.evaluate(() => {
    const t = window.taskscope.timeline;
    const states = t.overview.report.thread_states.map((row) => (row.tid === 18 ? { ...row, states: { not_started: 5, unknown: 90 } } : row));
    t.overview = { ...t.overview, report: { ...t.overview.report, thread_states: states } };
    t.layout();
  });
  const group = '1 thread without recorded states';
  const place = all.indexOf('thread 18');
  const unfolded = [...all.slice(0, place), group, ...all.slice(place)];
  assert.deepEqual(await labels(), unfolded);
  await page.evaluate(() => { const t = window.taskscope.timeline; t.toggleRow(t.rows.find((row) => row.label.endsWith('without recorded states'))); });
  assert.deepEqual(await labels(), unfolded.filter((label) => label !== 'thread 18'));
  await page.evaluate(() => window.taskscope.timeline.reveal({ track: 1, start: 1000, end: 2000 }));
  assert.deepEqual(await labels(), unfolded);
  await open(talking.address);
});
await step('calls of MPI are nested sections on demand', async () => {
  await page.evaluate(() => window.taskscope.setViews(['state', 'nested']));
  await settled(page);
  assert.ok((await labels()).includes('└ level 1'));
  await page.evaluate(async () => { const v = window.taskscope; await v.open(v.timeline.rows.find((row) => row.view === 'nested'), 20000); });
  await eventually(async () => assert.ok((await page.textContent('#panel')).includes('MPI_Recv')));
});
await step('ranges of a program are shown from the start, a row for each level', async () => {
  await open(walker.address);
  assert.deepEqual(await timeline('t.views'), ['state', 'nested']);
  // A thread without recorded states has its first level in its place.
  const seen = new Set();
  const levels = walker.nested.rows.map(({ label, thread }) => {
    const isFirst = walker.unrecorded.some((known) => known.track === thread) && !seen.has(thread);
    seen.add(thread);
    return [isFirst ? walker.unrecorded.find((known) => known.track === thread).label : `└ ${label}`, thread];
  });
  assert.deepEqual(await timeline("t.rows.filter((row) => row.view === 'nested').map((row) => [row.label, row.thread])"), levels);
  assert.ok(levels.length >= 5, `${levels.length} levels`);
  const found = await timeline("t.source.json('section', { view: 'nested', track: 0, at: 3000 })");
  assert.equal(found.label, 'RUNNING');
  const canvas = await page.locator('canvas.timeline').boundingBox();
  const [x, y] = await timeline("[t.xOf(3500), t.yOf(t.rows.find((row) => row.view === 'nested' && row.track === 0))]");
  await page.mouse.move(canvas.x + x, canvas.y + y);
  await eventually(async () => assert.ok((await page.textContent('#tip')).includes('nested sections: RUNNING')));
});
await step('a chip takes the levels away, and a link without them stays without', async () => {
  await page.click('#chips button');
  assert.deepEqual(await timeline('t.views'), ['state']);
  await eventually(async () => assert.ok(page.url().includes('views=state&'), page.url()));
  const address = page.url();
  await open(address);
  assert.deepEqual(await timeline('t.views'), ['state']);
});
const CODE_HEADER = 'threads: code by samples, each taken for the time since the one before';
await step('samples alone are bars of their functions in the rows of their threads, and in the strip', async () => {
  await open(sampled.address);
  assert.deepEqual(await timeline('t.views'), ['state', 'code']);
  assert.deepEqual((await labels()).filter((label) => label !== 'counters'), [CODE_HEADER, 'thread 1', 'thread 2']);
  const [list] = sampled.lists;
  const names = list.values.map(([, name]) => name);
  const drawn = await timeline("(t.draw(), t.named.map(({ row, name }) => [row.thread, name]))");
  for (const name of names.slice(0, 2)) assert.ok(drawn.some(([thread, other]) => thread === 0 && other === name), `${name} is not among ${drawn}`);
  assert.ok(drawn.every(([, name]) => names.includes(name)), String(drawn));
  await eventually(async () => {
    const legend = await page.textContent('.values');
    for (const name of names.slice(0, 3)) assert.ok(legend.includes(name.slice(-15)), `${name} is not in ${legend}`);
  });
  // In the strip the second thread is in one function all the time, in its colour, which is that of its bars.
  await eventually(async () => {
    const [colours, colour, bar] = await timeline(`(() => {
      v.minimap.draw();
      const { picture } = v.minimap;
      const context = picture.getContext('2d', { willReadFrequently: true });
      const { data } = context.getImageData(Math.floor(picture.width / 2), 0, 1, picture.height);
      const row = t.rows.find((row) => row.view === 'code' && row.thread === 1);
      const [x, y] = [t.xOf(6000), t.yOf(row) - row.height / 2 + 3];
      const bar = t.context.getImageData(Math.round(x * t.ratio), Math.round(y * t.ratio), 1, 1).data;
      return [[...new Set(new Uint32Array(data.buffer))], t.coloursOf('code')(${list.values[0][0]}), new Uint32Array(bar.buffer)[0]];
    })()`);
    assert.ok(colours.includes(colour), `${colour} is not among ${colours}`);
    assert.equal(bar, colour);
  });
  assert.equal(await timeline("t.coloursOf('path')(3) === t.coloursOf('code')(3)"), true);
});
/** Opens the code of the first thread at a time. @param {number} at */
const click = async (at) => {
  const canvas = await page.locator('canvas.timeline').boundingBox();
  const [x, y] = await timeline(`[t.xOf(${at}), t.yOf(t.rows.find((row) => row.view === 'code' && row.thread === 0))]`);
  await page.mouse.click(canvas.x + x, canvas.y + y);
};
await step('a click on code shows the path, the samples around it and the shares of its function', async () => {
  await click(2500);
  await eventually(async () => assert.equal(await page.textContent('#code-title'), sampled.bar.label));
  const path = await page.locator('#code-path li .name').allTextContents();
  assert.deepEqual(path, sampled.bar.sample.path.map(({ name }) => name));
  const shares = await page.textContent('#code-shares');
  for (const words of ['62.5 %', '25.0 %']) assert.ok(shares.includes(words), shares);
  const around = await page.textContent('#code-around');
  assert.ok(around.startsWith('8 samples around it') && around.includes(sampled.bar.around.functions[0][0]), around);
  assert.ok((await page.textContent('#panel')).includes('Samples are taken for time'));
  await page.keyboard.press('.');
  await eventually(async () => assert.equal(await timeline('t.marked.start'), sampled.bar.end));
  await click(9000);
  await eventually(async () => assert.ok((await page.textContent('#code-title')).startsWith('blocked for 2.50 µs')));
  assert.equal(sampled.blocked.value, 0);
});
await step('a search finds code by the functions of its path, and a range has its functions', async () => {
  await page.fill('#search', 'outer_for');
  await page.keyboard.press('Enter');
  await eventually(async () => assert.equal(await page.textContent('#matches'), '1 stretch of code, 7.00 µs'));
  assert.deepEqual(await timeline('[v.found.view, v.found.start, v.found.end]'), ['code', 0, 7000]);
  await timeline('t.select(0, 7000)');
  await eventually(async () => {
    const rows = await page.locator('#panel table', { hasText: 'By function' }).locator('tbody tr td:first-child, tbody tr th:first-child').allTextContents();
    assert.deepEqual(rows, sampled.functions.map(({ name }) => name));
  });
  await page.keyboard.press('Escape');
});
await step('levels of call paths are rows on demand', async () => {
  await page.evaluate(() => window.taskscope.setViews(['state', 'path']));
  await settled(page);
  const rows = (await labels()).filter((label) => label !== 'counters');
  assert.deepEqual(rows.slice(1), ['thread 1', '└ level 2', 'thread 2']);
});
await step('the report has code by samples in the rows of threads, too', async () => {
  await page.goto(pathToFileURL(join(folder, 'sampled.html')).href);
  await ready(page);
  assert.deepEqual((await labels()).filter((label) => label !== 'counters'), [CODE_HEADER, 'thread 1', 'thread 2']);
  await page.locator('#overview canvas').scrollIntoViewIfNeeded();
  const canvas = await page.locator('#overview canvas.timeline').boundingBox();
  const [x, y] = await timeline("[t.xOf(2500), t.yOf(t.rows.find((row) => row.view === 'code'))]");
  await page.mouse.move(canvas.x + x, canvas.y + y);
  await eventually(async () => assert.ok((await page.evaluate(() => document.querySelector('.timeline-host').title)).endsWith(`: ${sampled.bar.label}`)));
});
await step('a page of a part of samples alone names its threads, and says of their time what samples and the kernel know', async () => {
  await page.goto(pathToFileURL(join(folder, 'sampled-part.html')).href);
  await ready(page);
  assert.deepEqual((await labels()).filter((label) => label !== 'counters'), [CODE_HEADER, 'thread 1', 'thread 2 mill']);
  const captions = await page.locator('#tables caption').allTextContents();
  assert.ok(captions.includes('Where the time of the threads went') && !captions.includes('Where the time of the workers went'), captions.join());
  // 8.5 µs of the first thread: 0.5 without a CPU, 2.5 blocked.
  const rows = await page.locator('#tables .table', { has: page.locator('caption', { hasText: 'Where the time of the threads went' }) }).locator('tbody tr').evaluateAll((list) => list.map((row) => [row.cells[0].textContent, Number(row.cells[1].dataset.value)]));
  assert.deepEqual(rows, [['running', 5500], ['blocked', 2500], ['no CPU', 500]]);
  assert.ok(!(await page.textContent('#tables')).includes('unknown'));
  // Call paths have the same numbers, and columns without any are left out.
  const paths = await page.evaluate(() => {
    const { tHead, tBodies } = [...document.querySelectorAll('#call-paths table')].find((table) => table.caption?.textContent === 'Bottom-up');
    const titles = [...tHead.rows[0].cells].map((cell) => cell.textContent);
    const outermost = [...tBodies[0].rows].filter((row) => row.querySelector('[data-depth="0"]'));
    const sum = (title) => outermost.reduce((all, row) => all + Number(row.cells[titles.indexOf(title)].dataset.value), 0);
    return [titles, sum('blocked'), sum('no CPU')];
  });
  assert.deepEqual(paths, [['function, its callers below', 'own time', 'blocked', 'no CPU'], 2500, 500]);
  const facts = await page.locator('#what dd').allTextContents();
  assert.ok(facts.length > 5 && !facts.includes('–'), facts.join(' | '));
});
await step('the report has queues below their threads, too', async () => {
  await page.goto(pathToFileURL(join(folder, 'talking.html')).href);
  await ready(page);
  const own = await labels();
  assert.ok(own.includes('└ queue 2'), own.join(' | '));
  const tables = await page.evaluate(() => [...document.querySelectorAll('#tables table')].map((table) => [table.caption?.textContent, table.tBodies[0].rows.length]));
  const rows = new Map(tables);
  assert.equal(rows.get('Device queues'), 2, JSON.stringify(tables));
  assert.ok(rows.get('Operations of device queues') >= 4, JSON.stringify(tables));
});
assert.deepEqual(one.problems, []);
await one.close();
passed();
