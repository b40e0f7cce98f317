// Drives the viewer of a trace with views of models and with device queues, and of what a program tells of itself.
// Started by crates/view/tests/browser.rs with a folder that holds pages, report.json and expected.json: addresses, and the library's answers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually, passed, ready, settled, startBrowser, step, until } from './browser.js';

const [folder] = process.argv.slice(2);
const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'));
/** The second queue of the traces of queues alone: of the sixty marks over one letter three are left. */
const PILED = 'que\u0301\u0301\u0301ue\n2';

const three = await startBrowser({ width: 1400, height: 900 });
const { models } = expected;
const tree = (expression) => three.page.evaluate(`(() => { const t = window.taskscope.timeline; return ${expression}; })()`);
const rowOf = (view, row) => tree(`((r) => ({ y: t.yOf(r), shown: r.y >= t.scrollY }))(t.rowOfPlace({ view: '${view}', track: ${row} }))`);
await step('views of the models lie below the threads and tell their values', async () => {
  await three.page.goto(models.address);
  await ready(three.page);
  await three.page.evaluate(() => window.taskscope.models);
  const groups = await three.page.evaluate(() => [...document.querySelectorAll('#second optgroup')].map((group) => group.label));
  for (const family of ['threads', 'CPUs', 'nOS-V breakdown']) assert.ok(groups.some((label) => label.startsWith(family)), groups.join());
  await three.page.selectOption('#second', models.view);
  assert.deepEqual(await tree('t.views'), ['state', 'devices', models.view]);
  await tree(`t.show(${models.value.start} - 300, ${models.value.end} + 300)`);
  await settled(three.page);
  const canvas = await three.page.locator('canvas.timeline').boundingBox();
  const row = await rowOf(models.view, models.row);
  await three.page.mouse.move(canvas.x + (await tree(`t.xOf(${(models.value.start + models.value.end) / 2})`)), canvas.y + row.y);
  await until(three.page, () => document.getElementById('tip').style.display === 'block');
  await eventually(async () => {
    assert.deepEqual(await three.page.evaluate(() => window.taskscope.hovered), models.value);
    assert.ok((await three.page.textContent('#tip')).includes(models.value.label), await three.page.textContent('#tip'));
  });
  const drawn = await three.page.evaluate(([view, track, middle]) => {
    const t = window.taskscope.timeline;
    const [columns, values] = [new Uint32Array(4), new Uint32Array(4)];
    t.source.columns(view, track, middle, t.span / Math.round(t.plotWidth * t.ratio), columns, values);
    return values[0];
  }, [models.view, models.row, Math.floor((models.value.start + models.value.end) / 2)]);
  assert.equal(drawn, models.value.value);
});
await step('names of values that are known only when a view was played arrive with it', async () => {
  const { unplayed } = expected;
  const early = await startBrowser({ width: 1400, height: 900 });
  await early.page.goto(unplayed.address);
  await ready(early.page);
  await early.page.evaluate(() => window.taskscope.models);
  const named = (label) => early.page.evaluate((text) => [...document.querySelectorAll('ul.legend li')].some((part) => part.textContent.includes(text)), label);
  assert.equal(await named(unplayed.label), false, 'it is not known yet');
  await early.page.selectOption('#second', unplayed.view);
  await eventually(async () => assert.equal(await named(unplayed.label), true));
  assert.deepEqual(early.problems, []);
  await early.close();
});
await step('an operation of a device queue is shown with its submission', async () => {
  const wanted = models.operation;
  await tree(`t.show(${wanted.start} - 1000, ${wanted.end} + 1000)`);
  await settled(three.page);
  const canvas = await three.page.locator('canvas.timeline').boundingBox();
  const row = await rowOf('devices', wanted.track);
  await three.page.mouse.click(canvas.x + (await tree(`t.xOf(${(wanted.start + wanted.end) / 2})`)), canvas.y + row.y);
  await until(three.page, () => document.getElementById('section-title'));
  assert.ok(wanted.label.includes('\u202e'), wanted.label);
  assert.equal(await three.page.textContent('#section-title'), wanted.label.replace('\u202e', '\ufffd'), 'nothing turns the letters around');
  assert.equal(await three.page.locator('#panel i').count(), 0, 'markup in a name stays text');
});
await step('rows of device queues are pale, too, where they do not match what is highlighted', async () => {
  await tree('t.show(0, t.length)');
  const counts = async (text) => {
    await three.page.fill('#search', text);
    await three.page.click('#where');
    await until(three.page, () => window.taskscope.source.filter === document.getElementById('search').value);
    await settled(three.page);
    await until(three.page, () => !window.taskscope.timeline.scheduled);
    const found = await three.page.evaluate(() => {
      const t = window.taskscope.timeline;
      const row = t.rows.find((row) => row.kind === 'track' && row.view === 'devices');
      t.scroll(row.y - t.scrollY - 60);
      t.draw();
      const pixels = Math.round(t.plotWidth * t.ratio);
      const [columns, values] = [new Uint32Array(pixels), new Uint32Array(pixels)];
      const whole = t.source.columns('devices', row.track, t.from, t.span / pixels, columns, values);
      const copy = Object.assign(document.createElement('canvas'), { width: t.canvas.width, height: t.canvas.height }).getContext('2d', { willReadFrequently: true });
      copy.drawImage(t.canvas, 0, 0);
      const { data } = copy.getImageData(Math.round(150 * t.ratio), Math.round(t.yOf(row) * t.ratio), pixels, 1);
      const page = copy.getImageData(2, 2, 1, 1).data;
      const far = (x) => Math.max(...[0, 1, 2].map((i) => Math.abs(data[4 * x + i] - page[i])));
      const [pale, strong] = [[], []];
      columns.forEach((column, x) => { if ((column & 255) !== 255 && values[x] !== 0 && ((column >> 8) & 255) > 200) (((column >> 16) & 16) ? strong : pale).push(far(x)); });
      return [whole, pale, strong];
    });
    await three.page.click('#where');
    await until(three.page, () => window.taskscope.source.filter === '');
    return found;
  };
  const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;
  const [whole, pale, strong] = await counts('gemm_kernel');
  assert.ok(whole && pale.length > 5 && strong.length > 5, `${pale.length} pale, ${strong.length} not`);
  assert.ok(mean(pale) < mean(strong) / 2, `${mean(pale)} of ${mean(strong)}`);
  // A filter is about threads: no operation passes it.
  const [, all, none] = await counts('state=barrier');
  assert.ok(all.length > 5 && none.length === 0 && mean(all) < mean(strong) / 2);
  await three.page.fill('#search', '');
});
/** What the tables of a selected range tell of device queues. @param {import('playwright-core').Page} page */
const tableOfQueues = async (page) => page.evaluate(() => {
  const table = [...document.querySelectorAll('#panel table')].find((t) => t.caption.textContent === 'By device queue');
  const ns = (text) => { const [, number, unit] = /^([\d.]+) (ns|µs|ms|s)$/.exec(text); return Number(number) * { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 }[unit]; };
  return table && [...table.tBodies[0].rows].map(({ cells: [name, begun, kernels, transfers] }) => ({ name: name.textContent, begun: Number(begun.textContent), kernels: ns(kernels.textContent), transfers: ns(transfers.textContent) }));
});
/** Times are shown with three figures. @param {any[]} shown @param {any[]} wanted */
const areQueues = (shown, wanted) => {
  const near = (a, b) => Math.abs(a - b) <= b / 150 + 0.5;
  assert.deepEqual(shown.map((row) => [row.name.length, row.begun]), wanted.map((row) => [row.name.length, row.operations_begun]));
  shown.forEach((row, i) => assert.ok(near(row.kernels, wanted[i].kernels_ns) && near(row.transfers, wanted[i].transfers_ns), JSON.stringify([row, wanted[i]])));
  assert.ok(wanted.some((row) => row.kernels_ns > 0) && wanted.some((row) => row.transfers_ns > 0) && wanted.every((row) => row.operations_begun > 0));
};
await step('a selected range has the report of that time, whose names highlight sections', async () => {
  const { from, to, report: part } = expected.part;
  await three.page.evaluate(([from, to]) => window.taskscope.timeline.select(from, to), [from, to]);
  await until(three.page, () => document.getElementById('report-part'));
  await three.page.click('#report-part');
  await until(three.page, () => document.getElementById('part-title'));
  assert.deepEqual(await three.page.evaluate(() => window.taskscope.part), part);
  assert.ok(part.part.startsWith('--range ') && part.causes.length > 0);
  const first = await three.page.evaluate(() => {
    const table = [...document.querySelectorAll('#panel table')].find((t) => t.caption.textContent === 'Where the time of the workers went');
    return { rows: table.tBodies[0].rows.length, ns: Number(table.tBodies[0].rows[0].cells[2].dataset.value) };
  });
  assert.deepEqual(first, { rows: Math.min(12, part.causes.length), ns: part.causes[0].ns });
  assert.equal(await three.page.evaluate(() => document.querySelector('#panel #efficiency li .label').nextElementSibling.dataset.value), String(part.efficiency.parallel));
  assert.ok(await three.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  const name = await three.page.locator('#panel button.name').first();
  const text = await name.textContent();
  await name.click();
  await until(three.page, () => window.taskscope.source.filter);
  assert.ok((await three.page.inputValue('#search')).includes(text));
  assert.equal(await three.page.locator('#part-title').count(), 1, 'the tables stay');
  await name.click();
  await until(three.page, () => !window.taskscope.source.filter);
  await three.page.evaluate(([from, to]) => window.taskscope.timeline.select(from, to), [from, to]);
  await until(three.page, () => document.getElementById('save-page'));
  const [saved] = await Promise.all([three.page.waitForEvent('download'), three.page.click('#save-page')]);
  await saved.saveAs(join(folder, 'part-of-viewer.html'));
  const alone = await startBrowser({ width: 1200, height: 900 });
  await alone.page.goto(pathToFileURL(join(folder, 'part-of-viewer.html')).href);
  await ready(alone.page);
  assert.deepEqual(alone.problems, []);
  const report = JSON.parse(await alone.page.textContent('#report'));
  assert.deepEqual([report.part, report.capacity_ns, report.causes], [part.part, part.capacity_ns, part.causes]);
  assert.ok(await alone.page.evaluate(() => window.taskscope.timeline.rows.filter((row) => row.kind === 'track').length) > 3);
  await alone.close();
  await three.page.evaluate(() => window.taskscope.timeline.clearSelection());
});
await step('a selected range has the library\'s table of device queues', async () => {
  const { from, to, queues } = models.range;
  await tree(`t.select(${from}, ${to})`);
  await until(three.page, () => document.getElementById('range-title'));
  areQueues(await tableOfQueues(three.page), queues);
  assert.ok((await three.page.evaluate(() => document.querySelectorAll('#panel table').length)) > 2, 'and those of threads');
  await tree('t.clearSelection()');
});
await step('a link restores views of the models, a view is taken away, and a slice is saved', async () => {
  const address = await until(three.page, () => (decodeURIComponent(location.hash).includes('cpu.13') ? location.href : ''));
  await three.page.goto('about:blank');
  await three.page.goto(address);
  await ready(three.page);
  await three.page.evaluate(() => window.taskscope.models);
  assert.deepEqual(await tree('t.views'), ['state', 'devices', models.view]);
  await three.page.click('#chips button:last-child');
  assert.deepEqual(await tree('t.views'), ['state', 'devices']);
  const [download] = await Promise.all([three.page.waitForEvent('download'), three.page.click('#slice-view')]);
  const archive = readFileSync(await download.path());
  assert.ok(archive.length > 2000 && archive.toString('latin1').includes('stream.obs'), `${archive.length} bytes`);
  assert.deepEqual(three.problems, []);
});
await step('however many views there are, rows keep their room, and chips tell which they are', async () => {
  const before = await tree('t.views');
  await three.page.evaluate(() => window.taskscope.setViews([...document.querySelectorAll('#second option')].map((option) => option.value).filter(Boolean)));
  assert.ok((await tree('t.views.length')) > 20);
  for (const [width, height] of [[1400, 900], [400, 800]]) {
    await three.page.setViewportSize({ width, height });
    await eventually(async () => assert.ok((await three.page.locator('canvas.timeline').boundingBox())?.height > height / 4, `${width} × ${height}`));
  }
  await three.page.setViewportSize({ width: 1400, height: 900 });
  const chips = await three.page.evaluate(() => [...document.querySelectorAll('#chips button')].map((chip) => chip.textContent));
  assert.equal(new Set(chips).size, chips.length, chips.join(' '));
  await three.page.evaluate((views) => window.taskscope.setViews(views), before);
  assert.deepEqual(three.problems, []);
});
await step('what a program tells of itself is shown per thread or per task, in each behaviour, side by side', async () => {
  await three.page.goto(expected.walker);
  await ready(three.page);
  await three.page.evaluate(() => Promise.all([window.taskscope.models, window.taskscope.nested]));
  await three.page.evaluate(() => window.taskscope.setViews(['state']));
  await three.page.selectOption('#second', 'shown.thread.stacked.states');
  const labels = () => tree(`t.rows.filter((row) => row.foreign).map((row) => row.label)`);
  await eventually(async () => assert.deepEqual(await labels(), ['thread 100', 'thread 100 · 2', 'thread 101', 'thread 101 · 2']));
  await three.page.selectOption('#chips .behaviour', 'plain');
  assert.deepEqual(await tree('t.views'), ['state', 'shown.thread.plain.states']);
  await eventually(async () => assert.deepEqual(await labels(), ['thread 100', 'thread 101']));
  await three.page.selectOption('#chips .per', 'task');
  assert.deepEqual(await tree('t.views'), ['state', 'shown.task.plain.states']);
  await eventually(async () => assert.deepEqual(await labels(), ['walker 1']));
  await tree('t.show(6000, 14500)');
  await settled(three.page);
  const canvas = await three.page.locator('canvas.timeline').boundingBox();
  const row = await rowOf('shown.task.plain.states', 0);
  await three.page.mouse.move(canvas.x + (await tree('t.xOf(8000)')), canvas.y + row.y);
  await eventually(async () => {
    const text = await three.page.textContent('#tip');
    assert.ok(text.includes('states per task, plain: CACHE2.00 µs'), text);
  });
  // Another one of the same, in another behaviour.
  await three.page.selectOption('#second', 'shown.thread.stacked.key-0');
  await three.page.selectOption('#chips .per >> nth=1', 'task');
  await eventually(async () => assert.deepEqual(await labels(), ['walker 1', 'walker 1', 'walker 1 · 2']));
  assert.equal(await three.page.locator('#chips .behaviour').count(), 2);
  const address = await until(three.page, () => (decodeURIComponent(location.hash).includes('shown.task.stacked.key-0') ? location.href : ''));
  await three.page.goto('about:blank');
  await three.page.goto(address);
  await ready(three.page);
  await three.page.evaluate(() => window.taskscope.models);
  assert.deepEqual(await tree('t.views'), ['state', 'shown.task.plain.states', 'shown.task.stacked.key-0']);
  await eventually(async () => assert.deepEqual(await labels(), ['walker 1', 'walker 1', 'walker 1 · 2']));
  assert.deepEqual(await three.page.evaluate(() => [...document.querySelectorAll('#chips select')].map((list) => list.value)), ['task', 'plain', 'task', 'stacked']);
  assert.deepEqual(await tree('[t.from, t.span]'), [6000, 8500]);
  assert.deepEqual(three.problems, []);
});
await step('of a trace of device queues alone the viewer tells notes, remarks and tables of queues', async () => {
  const { address, range, remarks } = expected.queues;
  await three.page.goto(address);
  await ready(three.page);
  await settled(three.page);
  const panel = await three.page.evaluate(() => [document.querySelector('#panel').textContent, [...document.querySelectorAll('#panel .warn')].map((e) => e.textContent)]);
  for (const words of ['time of the queues', 'devicessimulated', 'device queues2', 'device operations195']) assert.ok(panel[0].includes(words), `${words}: ${panel[0]}`);
  for (const words of ['workers', 'CPUs', 'events', 'efficiency']) assert.ok(!panel[0].includes(`${words}0`) && !panel[0].includes(`${words}not known`), panel[0]);
  // The strip has the busy queues: something at most times, and nothing after the last operation.
  await eventually(async () => {
    const [busy, end] = await tree(`(() => {
      const { minimap } = window.taskscope;
      minimap.draw();
      const { picture } = minimap;
      const { data } = picture.getContext('2d', { willReadFrequently: true }).getImageData(0, picture.height - 1, picture.width, 1);
      const drawn = [...new Uint32Array(data.buffer)].map((pixel) => pixel !== 0);
      return [drawn.filter((pixel) => pixel).length / drawn.length, drawn[drawn.length - 1]];
    })()`);
    assert.ok(busy > 0.3, `${busy} of the strip, ${end}`);
  });
  assert.ok(panel[0].includes('Findings'), panel[0]);
  assert.ok(remarks.length > 0);
  assert.deepEqual(panel[1].map((text) => text.replace(/^[^:]*: /, '')), [...remarks, 'a note for a test']);
  assert.equal(await tree('t.rows.filter((row) => row.kind === "track")[2].label'), PILED);
  await tree(`t.select(${range.from}, ${range.to})`);
  await until(three.page, () => document.getElementById('range-title'));
  areQueues(await tableOfQueues(three.page), range.queues.map((row) => ({ ...row, name: row.name.replace(/(\p{M}{3})\p{M}+/gu, '$1') })));
  assert.equal(await three.page.evaluate(() => document.querySelectorAll('#panel table').length), 1, 'of threads there is nothing');
  const [download] = await Promise.all([three.page.waitForEvent('download'), three.page.click('#svg')]);
  const picture = readFileSync(await download.path(), 'utf8');
  assert.ok(picture.includes(PILED.replace('\n', ' ')) && !picture.includes('\ufffd'), 'a name of two lines is one');
  for (const [text, words] of [['duration>1ms', 'nothing matches; filters apply to threads, words to device queues too'], ['no such name in it', 'nothing matches']]) {
    await three.page.fill('#search', text);
    await three.page.press('#search', 'Enter');
    await eventually(async () => assert.equal(await three.page.textContent('#nothing'), words));
  }
  assert.deepEqual(three.problems, []);
});
await three.close();
passed();
