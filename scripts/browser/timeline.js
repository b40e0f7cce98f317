// Drives the timeline of the viewer: names in bars, heights of rows, the strip of the whole run, colours, flows.
// Started by crates/view/tests/browser.rs with a folder that holds expected.json: addresses, and the library's answers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually, passed, ready, settled, startBrowser, step } from './browser.js';

const expected = JSON.parse(readFileSync(join(process.argv[2], 'expected.json'), 'utf8'));

const one = await startBrowser({ width: 1440, height: 900 });
const { page } = one;
/** @param {string} expression of the timeline `t` and the viewer `v` */
const timeline = (expression) => page.evaluate(`(() => { const v = window.taskscope; const t = v.timeline; return ${expression}; })()`);
const press = async (key) => { await page.keyboard.press(key); await settled(page); };

await page.goto(expected.address);
await ready(page);
await settled(page);

await step('rows fill the window, and have the height that was chosen', async () => {
  const tracks = await timeline('t.rows.filter((row) => row.kind === "track").length');
  const fitting = await timeline('t.rows.find((row) => row.kind === "track").height');
  assert.ok(tracks > 4 && fitting > 16, `${tracks} rows of ${fitting}`);
  assert.equal(await timeline('t.mostScroll'), 0);
  for (const [mode, height] of [['compact', 16], ['tall', 36], ['normal', 22]]) {
    await page.selectOption('#tall', mode);
    assert.equal(await timeline('t.rows.find((row) => row.kind === "track").height'), height);
  }
  await eventually(async () => assert.ok(page.url().includes('rows=normal'), page.url()));
  await page.reload();
  await ready(page);
  await settled(page);
  assert.equal(await page.inputValue('#tall'), 'normal');
  await page.selectOption('#tall', 'fit');
  assert.equal(await timeline('t.rows.find((row) => row.kind === "track").height'), fitting);
});
await step('bars have names as soon as these fit, inside of them, and the library\'s', async () => {
  for (const { from, to, track, bars } of expected.names) {
    await timeline(`t.show(${from}, ${to})`);
    await settled(page);
    await eventually(async () => {
      const drawn = await timeline(`(t.draw(), t.named.filter(({ row }) => row.track === ${track}).map(({ row, ...rest }) => ({ ...rest, wide: (t.context.font = '11px system-ui, sans-serif', t.context.measureText(rest.words).width), tall: row.height })))`);
      const pixels = await timeline('t.nsPerPixel');
      // What has room for forty pixels has a name.
      const wanted = bars.filter(([, start, end]) => Math.min(end, to) - Math.max(start, from) > 90 * pixels).map(([, , , name]) => name);
      assert.ok(wanted.length > 0);
      const names = drawn.map(({ name }) => name);
      for (const name of wanted) assert.ok(names.includes(name), `${name} is not among ${names}`);
      for (const { words, left, right, wide } of drawn) assert.ok(wide <= right - left + 1, `${words} of ${wide} in ${left}..${right}`);
    });
  }
});
await step('threads are shown by process, workers alone, those with most loss first, or the n-th of each process together', async () => {
  const tracks = () => timeline('t.rows.filter((row) => row.kind === "track").map((row) => row.track)');
  const before = await tracks();
  const kinds = () => timeline('t.rows.filter((row) => row.kind === "process").length');
  assert.equal(await kinds(), 2);
  const { workers, lost, nth } = expected.orders;
  for (const [order, wanted] of [['workers', workers], ['lost', lost], ['nth', nth]]) {
    await page.selectOption('#order', order);
    assert.deepEqual(await tracks(), wanted, order);
    assert.equal(await kinds(), 0);
    assert.match(await timeline('t.rows.find((row) => row.kind === "track").label'), /^process \d+, thread /);
  }
  await eventually(async () => assert.ok(page.url().includes('order=nth'), page.url()));
  await page.reload();
  await ready(page);
  await settled(page);
  assert.deepEqual(await tracks(), nth);
  await page.selectOption('#order', '');
  assert.deepEqual(await tracks(), before);
});
await step('a row of a task type opens the type, and keys and buttons go from instance to instance', async () => {
  const [first, second] = expected.type;
  await timeline('t.show(0, t.length)');
  await settled(page);
  const canvas = await page.locator('canvas.timeline').boundingBox();
  await timeline(`(t.moveFocus(t.rows.findIndex((row) => row.slot === 0) - Math.max(0, t.focusRow)), 0)`);
  const [x, y] = await timeline(`[t.xOf(${first.shown.start}) + 1, t.yOf(t.rows.find((row) => row.slot === 0))]`);
  await page.mouse.click(canvas.x + x, canvas.y + y);
  await eventually(async () => assert.equal(await page.textContent('#type-title'), first.name));
  const panel = await page.textContent('#panel');
  assert.ok(panel.includes(`${first.tasks.toLocaleString('en').replaceAll(',', '\u202f')} task`) && (await page.locator('#type-longest li').count()) === first.longest.length, panel);
  await page.locator('#type-longest button').first().click();
  await eventually(async () => assert.equal(await timeline('v.type.facts.shown.number'), first.longest[0].number));
  const shown = () => timeline('[v.type.facts.shown.number, t.marked.track, t.marked.start, t.marked.end]');
  const { number, track, start, end } = second.shown;
  await timeline(`(v.type.facts.shown.number = ${first.shown.number}, 0)`);
  await page.locator('canvas.timeline').focus();
  await page.keyboard.press('.');
  await eventually(async () => assert.deepEqual(await shown(), [number, track, start, end]));
  await page.click('#type-previous');
  await eventually(async () => assert.deepEqual(await shown(), [first.shown.number, first.shown.track, first.shown.start, first.shown.end]));
  assert.equal(await page.isDisabled('#type-previous'), true);
  await timeline('(t.clearSelection(), t.show(0, t.length))');
});
await step('the strip of the whole run shows the visible part, and moves it', async () => {
  await timeline('t.show(t.length / 4, t.length / 2)');
  await settled(page);
  const box = await page.locator('canvas.minimap').boundingBox();
  const [left, wide, length] = await timeline('[t.gutter, t.plotWidth, t.length]');
  const x = (share) => box.x + left + share * wide;
  // Inside of the window a drag moves it.
  await page.mouse.move(x(0.3), box.y + 10);
  await page.mouse.down();
  await page.mouse.move(x(0.4), box.y + 10, { steps: 4 });
  await page.mouse.up();
  const from = await timeline('t.from');
  assert.ok(Math.abs(from / length - 0.35) < 0.01, `${from / length}`);
  assert.ok(Math.abs((await timeline('t.span')) / length - 0.25) < 0.01);
  // Outside of it a press moves it there, a drag draws another one.
  await page.mouse.click(x(0.9), box.y + 10);
  assert.ok(Math.abs((await timeline('t.from + t.span / 2')) / length - 0.875) < 0.05);
  await page.mouse.move(x(0.1), box.y + 10);
  await page.mouse.down();
  await page.mouse.move(x(0.15), box.y + 10, { steps: 4 });
  await page.mouse.up();
  assert.ok(Math.abs((await timeline('t.from')) / length - 0.1) < 0.01);
  assert.ok(Math.abs((await timeline('t.span')) / length - 0.05) < 0.01);
  const window = await page.evaluate(() => {
    const { minimap, timeline: t } = window.taskscope;
    minimap.draw();
    const copy = Object.assign(document.createElement('canvas'), { width: minimap.canvas.width, height: minimap.canvas.height }).getContext('2d', { willReadFrequently: true });
    copy.drawImage(minimap.canvas, 0, 0);
    const dark = parseInt(t.theme.text.slice(1, 3), 16);
    const line = [...copy.getImageData(0, Math.round(2 * t.ratio), minimap.canvas.width, 1).data].filter((_, i) => i % 4 === 0);
    const at = line.map((red, i) => (Math.abs(red - dark) < 40 ? i : -1)).filter((i) => i >= 0);
    return [at[0], at.at(-1)].map((i) => (i / t.ratio - t.gutter) / t.plotWidth);
  });
  assert.ok(Math.abs(window[0] - 0.1) < 0.01 && Math.abs(window[1] - 0.15) < 0.01, String(window));
});
await step('the room for names of rows is changed by mouse and by keys', async () => {
  const box = await page.locator('canvas.timeline').boundingBox();
  await page.mouse.move(box.x + (await timeline('t.gutter')), box.y + 300);
  await page.mouse.down();
  await page.mouse.move(box.x + 260, box.y + 300, { steps: 4 });
  await page.mouse.up();
  assert.equal(await timeline('t.gutter'), 260);
  await page.focus('canvas.timeline');
  for (let i = 0; i < 20; i++) await page.keyboard.press('[');
  assert.equal(await timeline('t.gutter'), 60);
  for (let i = 0; i < 4; i++) await page.keyboard.press(']');
  assert.equal(await timeline('t.gutter'), 140);
  assert.equal(await timeline('t.xOf(t.from)'), 140);
});
await step('keys frame what is opened, and mark its time', async () => {
  const { track, answer } = expected.section;
  await page.evaluate(({ track, answer }) => { window.taskscope.timeline.reveal({ ...answer, track }); }, { track, answer });
  await page.focus('canvas.timeline');
  await press('f');
  const [from, span] = await timeline('[t.from, t.span]');
  const length = answer.end - answer.start;
  assert.ok(Math.abs(span - 2 * length) < 2 && Math.abs(from - (answer.start - length / 2)) < 2, `${from} ${span}`);
  await press('m');
  assert.deepEqual(await timeline('t.selection'), { from: answer.start, to: answer.end });
  await press('Home');
  await press('f');
  assert.ok(Math.abs((await timeline('t.span')) - length) < 2);
  await press('Escape');
  await press('Home');
  const whole = await timeline('t.span');
  await press('w');
  assert.equal(await timeline('t.span'), whole / 2);
  const before = await timeline('t.from');
  await press('d');
  assert.ok((await timeline('t.from')) > before);
  await press('a');
  await press('s');
  assert.equal(await timeline('t.span'), whole);
});
await step('the legend names what is in sight, and a click on a state highlights it', async () => {
  const named = () => page.evaluate(() => [...document.querySelectorAll('.legends [data-state]')].map((button) => button.dataset.state));
  const { answer } = expected.section;
  await timeline('t.show(0, t.length)');
  await settled(page);
  await eventually(async () => assert.ok((await named()).length > 3 && (await named()).includes('barrier'), String(await named())));
  await timeline(`(t.collapsed.add('all'), t.show(${answer.start} + (${answer.end} - ${answer.start}) / 3, ${answer.start} + (${answer.end} - ${answer.start}) / 2))`);
  await settled(page);
  await eventually(async () => {
    const seen = await timeline('t.overview.states.filter((_, number) => t.statesInSight[number] > 0).map(({ name }) => name)');
    assert.ok(seen.includes(answer.state));
    assert.deepEqual((await named()).sort(), seen.sort());
  });
  await timeline('(t.collapsed.clear(), t.show(0, t.length))');
  await settled(page);
  await eventually(async () => assert.ok((await named()).includes('barrier')));
  await page.click('.legends [data-state="barrier"]');
  await eventually(async () => assert.equal(await page.evaluate(() => window.taskscope.source.filter), 'state=barrier'));
  await settled(page);
  await page.click('.legends [data-state="barrier"]');
  await eventually(async () => assert.equal(await page.evaluate(() => window.taskscope.source.filter), ''));
  await settled(page);
});
await step('the panel of a task splits the time before its start, and names the last predecessor', async () => {
  const { answer } = expected.task;
  const { start } = answer;
  await page.evaluate((ref) => window.taskscope.goToTask(ref), answer.task_ref);
  const words = await page.textContent('#steps');
  assert.ok((await page.textContent('#panel h2')).endsWith(`, ${answer.task_ref.name}`));
  for (const part of ['created', 'waited for dependences', 'waited in the queue', 'began', 'ended', answer.critical_predecessor.task_ref.name]) assert.ok(words.includes(part), `${part}: ${words}`);
  // The parts have the lengths of the library's times.
  const lengths = await page.evaluate(() => [...document.querySelectorAll('#steps li')].map((li) => li.querySelector('.number').textContent));
  const format = (ns) => page.evaluate((ns) => window.taskscope.formatTime(ns), ns);
  assert.equal(lengths[1], await format(start.is_released ? start.ready - answer.created : 0));
  assert.equal(lengths[2], await format(answer.began - start.ready));
  for (const { ns } of start.free) assert.ok(words.includes(await format(ns)), words);
  if (!start.free.length && answer.began > start.ready) assert.ok(words.includes('none of'), words);
});
await step('arrows of the visible part come and go with a key, and are the library\'s', async () => {
  await page.keyboard.press('Escape');
  await timeline(`t.show(${expected.flows.from}, ${expected.flows.to})`);
  await page.focus('canvas.timeline');
  await press('e');
  await eventually(async () => {
    const shown = await timeline('t.flows.map(({ kind, fromTrack, from, toTrack, to }) => [kind, fromTrack, from, toTrack, to])');
    assert.deepEqual(shown, expected.flows.answer.flows.map((flow) => [flow.kind, flow.from_track, flow.from, flow.to_track, flow.to]));
  });
  const kinds = new Set(expected.flows.answer.flows.map((flow) => flow.kind));
  assert.ok(kinds.has('dependence') && kinds.has('creator'), [...kinds].join());
  await press('e');
  assert.equal(await timeline('t.flows.length'), 0);
});
await step('a search counts its matches, forgives, and hints at what was nearly right', async () => {
  const { text, answer } = expected.totals;
  for (const asked of [text, `type=${text}`]) {
    await page.fill('#search', asked);
    await page.press('#search', 'Enter');
    // The count of the search before may still be shown.
    const totals = await eventually(async () => {
      assert.match(await page.textContent('#matches'), /section/);
      const found = await page.evaluate(() => window.taskscope.totals);
      assert.equal(found?.text, asked);
      return found;
    });
    assert.ok(totals.sections > 0 && totals.ns > 0);
    if (asked === text) assert.deepEqual([totals.sections, totals.ns], [answer.sections, answer.ns]);
  }
  await page.fill('#search', text.slice(0, -1).replace('r', 'rr'));
  await page.press('#search', 'Enter');
  await eventually(async () => assert.ok((await page.textContent('#hints')).includes(text)));
  await page.click('#hints button');
  await eventually(async () => assert.match(await page.textContent('#matches'), /section/));
  assert.equal(await page.inputValue('#search'), text);
  await page.keyboard.press('Escape');
});
await step('rows are filtered by words and put on top, and a link keeps both', async () => {
  const labels = () => timeline('t.rows.filter((row) => row.kind === "track").map((row) => row.label)');
  const all = await labels();
  const wanted = all[2];
  await page.fill('#only', wanted.toUpperCase());
  assert.deepEqual(await labels(), all.filter((label) => label.includes(wanted)));
  assert.ok((await timeline('t.rows.find((row) => row.kind === "view").label')).includes(`of ${all.length} rows`));
  await timeline('(t.focusRow = t.rows.findIndex((row) => row.kind === "track"), 0)');
  await page.focus('canvas.timeline');
  await press('p');
  await page.fill('#only', '');
  const [first, ...others] = await labels();
  assert.ok(first.includes(wanted) && others.length === all.length, `${first} before ${others}`);
  await page.fill('#only', wanted);
  await eventually(async () => assert.ok(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('only') === wanted && page.url().includes('top='), page.url()));
  await page.reload();
  await ready(page);
  await settled(page);
  assert.equal(await page.inputValue('#only'), wanted);
  assert.ok((await labels())[0].includes(wanted) && (await labels()).length === 2);
  await page.fill('#only', '');
  await timeline('(t.focusRow = t.rows.findIndex((row) => row.kind === "track"), 0)');
  await page.focus('canvas.timeline');
  await press('p');
  assert.deepEqual(await labels(), all);
});
await step('a click on a value of a legend highlights it, a second one ends that', async () => {
  await page.selectOption('#view', 'type');
  await timeline('t.show(0, t.length)');
  await settled(page);
  const first = page.locator('.values button').first();
  await eventually(async () => assert.ok(await first.isVisible()));
  const label = await first.getAttribute('data-value-name');
  await first.click();
  await eventually(async () => assert.ok((await timeline('v.source.filter')).includes(label)));
  await settled(page);
  await page.locator(`.values button[data-value-name="${label}"]`).click();
  await eventually(async () => assert.equal(await timeline('v.source.filter'), ''));
  await page.selectOption('#view', 'state');
});
assert.deepEqual(one.problems, []);
await one.close();

const two = await startBrowser({ width: 1000, height: 700 });
await two.page.goto(expected.talking.address);
await ready(two.page);
await settled(two.page);
await step('a call names its message: partner, size, times, the late side, and an arrow', async () => {
  await two.page.evaluate(async (at) => { const v = window.taskscope; await v.open(v.timeline.rowOf(0), at); }, expected.talking.at);
  assert.equal(await two.page.textContent('#section-title'), 'MPI_Recv');
  const words = await two.page.textContent('#messages');
  for (const part of ['from rank 1', '4\u202f096 bytes', 'tag 7', 'sent 30.0 µs after its receive was posted']) assert.ok(words.includes(part), words);
  assert.deepEqual(await two.page.evaluate(() => window.taskscope.timeline.edges.map(({ kind, fromTrack, toTrack }) => [kind, fromTrack, toTrack])), [['message', 1, 0]]);
});
await step('the matrix has the message and the wait of each pair of processes', async () => {
  const { matrix } = expected.talking;
  assert.deepEqual(matrix.cells, [{ from: 1, to: 0, messages: 1, bytes: 4096, wait_ns: 30000 }]);
  await two.page.goto(pathToFileURL(join(process.argv[2], 'talking.html')).href);
  await ready(two.page);
  const cells = () => two.page.evaluate(() => [...document.querySelectorAll('.matrix tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.deepEqual(await cells(), [['0', '', ''], ['1', '4\u202f096', '']]);
  await two.page.selectOption('#communication .measure', 'wait');
  assert.deepEqual(await cells(), [['0', '', ''], ['1', '30.0 µs', '']]);
});
await step('on a telephone rows have more room than their names', async () => {
  const small = await startBrowser({ width: 390, height: 844, dark: true, touch: true });
  await small.page.goto(expected.address);
  await ready(small.page);
  await settled(small.page);
  const [gutter, plot, scrolls] = await small.page.evaluate(() => [window.taskscope.timeline.gutter, window.taskscope.timeline.plotWidth, document.documentElement.scrollWidth > innerWidth]);
  assert.ok(plot > 2.5 * gutter && !scrolls, `${gutter} ${plot}`);
  assert.deepEqual(small.problems, []);
  await small.close();
});
assert.deepEqual(two.problems, []);
await two.close();
passed();
