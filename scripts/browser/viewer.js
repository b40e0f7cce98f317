// Drives the viewer like a reader does, and compares what it shows with the library's answers.
// Started by crates/view/tests/browser.rs with a folder that holds pages, report.json and expected.json: addresses, and the library's answers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually, passed, ready, settled, startBrowser, step, until } from './browser.js';
import { printed } from './paper.js';

const [folder] = process.argv.slice(2);
const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'));
const GUTTER = 150;

const two = await startBrowser({ width: 1400, height: 900 });
const page = two.page;
const timeline = (expression) => page.evaluate(`(() => { const t = window.taskscope.timeline; return ${expression}; })()`);
let box = { x: 0, y: 0, width: 0, height: 0 };
/** A point of a track at a time, on the screen. */
const pointOf = async (track, at) => ({
  x: box.x + (await timeline(`t.xOf(${at})`)), y: box.y + (await timeline(`t.yOf(t.rowOf(${track}))`)),
});

await step('the viewer opens', async () => {
  await page.goto(expected.address);
  await ready(page);
  await settled(page);
  box = await page.locator('canvas.timeline').boundingBox();
  assert.equal(await timeline('t.span'), expected.length_ns);
});
await step('the timeline follows the colours of the system', async () => {
  const corner = () => timeline("[...t.context.getImageData(2, 2, 1, 1).data].slice(0, 3).join(' ')");
  for (const [colorScheme, colour] of [['dark', '20 23 26'], ['light', '255 255 255']]) {
    await page.emulateMedia({ colorScheme });
    await eventually(async () => assert.equal(await corner(), colour));
  }
});
await step('rows at the whole run are the library\'s buckets', async () => {
  for (const row of expected.rows) {
    const got = await page.evaluate(async (r) => {
      const source = window.taskscope.source;
      const query = { view: r.view, level: r.level, first: r.first, count: r.count, tracks: String(r.track) };
      return [...new Uint32Array(await (await source.request('rows', query)).arrayBuffer())];
    }, row);
    assert.deepEqual(got, row.numbers, `${row.view} at level ${row.level}`);
  }
});
await step('labels of the ruler stay inside and do not cover each other', async () => {
  const drawn = await page.evaluate(() => {
    const t = window.taskscope.timeline;
    const labels = [];
    for (let span = t.length; span > 20; span /= 1.7) {
      for (const share of [0.1, 0.37, 0.9]) {
        t.show(t.length * share, t.length * share + span);
        // The words of a selected range take the place of labels.
        t.selection = share === 0.1 ? null : { from: t.from + 0.3 * t.span, to: t.from + (0.3 + share) * t.span };
        const line = [];
        t.context.fillText = (words, x, y) => {
          const wide = t.context.measureText(words).width;
          const left = x - { left: 0, center: wide / 2, right: wide }[t.context.textAlign];
          if (y === 12) line.push([left, left + wide, words]);
        };
        t.draw();
        delete t.context.fillText;
        labels.push(line.sort((a, b) => a[0] - b[0]));
      }
    }
    t.clearSelection();
    t.show(0, t.length);
    return labels;
  });
  const width = await timeline('t.width');
  for (const line of drawn) {
    assert.ok(line.length > 2, JSON.stringify(line));
    line.forEach(([left, right], i) => assert.ok(left >= (i ? line[i - 1][1] : GUTTER) && right <= width, JSON.stringify(line)));
  }
});
await step('zooming keeps the time under the pointer', async () => {
  const x = 700;
  const before = await timeline(`t.timeAt(${x})`);
  await page.mouse.move(box.x + x, box.y + 200);
  await page.keyboard.down('Control');
  for (let i = 0; i < 5; i++) await page.mouse.wheel(0, -240);
  await page.keyboard.up('Control');
  await settled(page);
  const [after, span] = [await timeline(`t.timeAt(${x})`), await timeline('t.span')];
  assert.ok(span < expected.length_ns / 15, `${span}`);
  assert.ok(Math.abs(after - before) < span / 500, `${before} became ${after}`);
});
await step('what is drawn is the library\'s section at each pixel, when zoomed to single sections', async () => {
  await timeline(`t.show(${expected.section.answer.start} - 3000, ${expected.section.answer.start} + 9000)`);
  await settled(page);
  const seen = await page.evaluate(async (track) => {
    const t = window.taskscope.timeline;
    const pixels = Math.round(t.plotWidth * t.ratio);
    const nsPerPixel = t.span / pixels;
    const columns = new Uint32Array(pixels);
    const there = t.source.columns('state', track, t.from, nsPerPixel, columns, null);
    const answers = [];
    for (let i = 5; there && i < pixels; i += 37) {
      const middle = Math.floor(t.from + (i + 0.5) * nsPerPixel);
      const answer = await t.source.json('section', { track, at: middle });
      // At a border a pixel holds two sections; the one with the larger share is shown.
      const whole = answer.start <= t.from + (i - 1) * nsPerPixel && answer.end >= t.from + (i + 2) * nsPerPixel;
      if (whole) answers.push([t.overview.states[columns[i] & 255].name, answer.state]);
    }
    return answers;
  }, expected.section.track);
  assert.ok(seen.length > 3);
  for (const [shown, truth] of seen) assert.equal(shown, truth);
});
await step('panning moves by as many pixels as the pointer', async () => {
  const [from, perPixel] = [await timeline('t.from'), await timeline('t.nsPerPixel')];
  await page.mouse.move(box.x + 800, box.y + 200);
  await page.mouse.down();
  await page.mouse.move(box.x + 700, box.y + 200, { steps: 5 });
  await page.mouse.up();
  assert.ok(Math.abs((await timeline('t.from')) - (from + 100 * perPixel)) < perPixel * 2);
});
await step('hovering tells the section, its task and whom it waits for', async () => {
  for (const wanted of [expected.section, expected.wait]) {
    await timeline(`t.show(${wanted.answer.start} - 2000, ${wanted.answer.end} + 2000)`);
    await settled(page);
    const point = await pointOf(wanted.track, (wanted.answer.start + wanted.answer.end) / 2);
    await page.mouse.move(point.x, point.y);
    await until(page, () => document.getElementById('tip').style.display === 'block');
    await eventually(async () => {
      assert.deepEqual(await page.evaluate(() => window.taskscope.hovered), wanted.answer);
      const text = await page.textContent('#tip');
      assert.ok(text.includes(wanted.answer.label), text);
      if (wanted.answer.culprits && wanted.answer.culprits.length) assert.ok(text.includes('meanwhile'), text);
    });
    await timeline('t.zoom(0.5)');
    assert.equal(await page.evaluate(() => document.getElementById('tip').style.display), 'none', 'something else lies there now');
  }
});
await step('a click shows the task, its creator, dependences and critical predecessor', async () => {
  const wanted = expected.task;
  await timeline(`t.show(${wanted.answer.began} - 2000, ${wanted.answer.began} + 20000)`);
  await settled(page);
  const point = await pointOf(wanted.track, wanted.answer.began + 50);
  await page.mouse.click(point.x, point.y);
  await until(page, () => document.getElementById('task'));
  const shown = await page.evaluate(() => window.taskscope.task);
  assert.deepEqual(shown, wanted.answer);
  const edges = await timeline('t.edges');
  const drawn = wanted.answer.predecessors.filter((e) => e.runner !== null && e.ended !== null).length + wanted.answer.successors.filter((e) => e.runner !== null && e.began !== null).length;
  assert.equal(edges.filter((edge) => edge.kind === 'dependence').length, drawn);
  assert.equal(edges.filter((edge) => edge.critical).length, 1);
  assert.equal(edges.filter((edge) => edge.kind === 'creator').length, 1);
  assert.ok((await page.textContent('#panel')).includes(wanted.answer.critical_predecessor.task_ref.name));
  for (const other of wanted.answer.others) assert.ok((await page.textContent('#panel')).includes(other.name));
});
await step('a search goes to the next match, and on', async () => {
  await page.keyboard.press('Escape');
  await timeline(`t.show(0, ${expected.length_ns})`);
  await page.fill('#search', expected.search.text);
  await page.focus('#search');
  for (const answer of expected.search.answers) {
    await page.keyboard.press('Enter');
    await eventually(async () => assert.deepEqual(await page.evaluate(() => window.taskscope.found), answer));
    await settled(page);
    const marked = await timeline('t.marked');
    assert.equal(marked.start, answer.start);
    assert.ok((await timeline('t.from')) <= answer.start && answer.end <= (await timeline('t.from + t.span')), 'out of sight');
  }
  // Escape leaves the field as it is, and n goes on.
  await page.keyboard.press('Escape');
  await page.keyboard.press('N');
  await eventually(async () => assert.deepEqual(await page.evaluate(() => window.taskscope.found), expected.search.answers.at(-2)));
  assert.equal(await page.inputValue('#search'), expected.search.text);
  await page.fill('#search', 'there is no such name');
  await page.keyboard.press('Enter');
  await until(page, () => document.getElementById('nothing'));
});
await step('a search that has come to the end goes on from the beginning, and says so', async () => {
  await page.keyboard.press('Escape');
  await timeline(`t.show(${expected.length_ns} - 10, ${expected.length_ns})`);
  await page.fill('#search', expected.search.text);
  await page.focus('#search');
  await page.keyboard.press('Enter');
  await until(page, () => document.getElementById('around'));
  assert.ok((await page.textContent('#around')).includes('from the beginning again'));
  const [first] = expected.search.answers;
  assert.deepEqual(await page.evaluate(() => window.taskscope.found), first);
});
await step('names in tables have room in a narrow window', async () => {
  const narrow = await startBrowser({ width: 400, height: 800 });
  await narrow.page.goto(pathToFileURL(join(folder, 'report.html')).href);
  await ready(narrow.page);
  const [widths, page] = await narrow.page.evaluate(() => [
    [...document.querySelectorAll('#tables td:has(.name), #tables th:has(.name)')].map((cell) => cell.getBoundingClientRect().width), document.documentElement.scrollWidth]);
  assert.ok(widths.length > 3 && widths.every((width) => width > 80), widths.join(' '));
  assert.equal(page, 400);
  await narrow.close();
});
await step('what does not match a filter is shown pale, and a wrong filter is told', async () => {
  await timeline(`t.show(0, ${expected.length_ns})`);
  await page.fill('#search', 'state=barrier');
  await page.click('#where');
  await until(page, () => window.taskscope.source.filter === 'state=barrier');
  await settled(page);
  const seen = await page.evaluate(async (track) => {
    const t = window.taskscope.timeline;
    const columns = new Uint32Array(Math.round(t.plotWidth * t.ratio));
    const whole = t.source.columns('state', track, t.from, t.span / columns.length, columns, null);
    return [whole, columns.filter((bucket) => (bucket >> 16) & 16).length, columns.length];
  }, expected.section.track);
  assert.ok(seen[0] && seen[1] > 0 && seen[1] < seen[2], JSON.stringify(seen));
  await eventually(async () => assert.ok(page.url().includes('where=state%3Dbarrier'), page.url()));
  await page.click('#where');
  await until(page, () => window.taskscope.source.filter === '');
  await page.fill('#search', 'stat=barrier');
  await page.focus('#search');
  await page.keyboard.press('Enter');
  await until(page, () => document.getElementById('problem'));
  assert.ok((await page.textContent('#problem')).includes('no field called'));
  two.problems.length = 0; // the browser logs the refused question
  await page.keyboard.press('Escape');
});
await step('the button highlight says whether it is pressed, however it was', async () => {
  const button = () => page.evaluate(() => { const e = document.getElementById('where'); return [e.getAttribute('aria-pressed'), getComputedStyle(e).backgroundColor]; });
  const [, colour] = await button();
  const is = (pressed) => eventually(async () => {
    const [said, shown] = await button();
    assert.deepEqual([said, shown !== colour], [String(pressed), pressed]);
  });
  await is(false);
  await page.fill('#search', 'state=barrier');
  await page.click('#where');
  await is(true);
  await page.click('#where');
  await is(false);
  await page.focus('canvas.timeline');
  await page.keyboard.press('h');
  await is(true);
  await eventually(async () => assert.ok(page.url().includes('where='), page.url()));
  const address = page.url();
  await page.keyboard.press('h');
  await is(false);
  // A link presses it too.
  await page.goto('about:blank');
  await page.goto(address);
  await ready(page);
  await is(true);
  await page.click('#where');
  await is(false);
  await page.fill('#search', 'duration>1xs');
  await page.click('#where');
  await eventually(async () => assert.ok((await page.textContent('#problem')).includes('units are: ns, us, ms, s, min')));
  await is(false);
  two.problems.length = 0; // the browser logs the refused question
  await page.fill('#search', '');
  await page.keyboard.press('Escape');
});
await step('a selected range has the library\'s tables', async () => {
  await timeline(`t.show(${expected.range.from} - 10000, ${expected.range.to} + 10000)`);
  await settled(page);
  await timeline(`t.select(${expected.range.from}, ${expected.range.to})`);
  await until(page, () => document.getElementById('range-title'));
  assert.deepEqual(await page.evaluate(() => window.taskscope.range), expected.range.answer);
  const rows = await page.evaluate(() => [...document.querySelectorAll('#panel table')][0].rows.length);
  assert.equal(rows - 1, Math.min(12, Object.keys(expected.range.answer.states).length));
  // By mouse: shift and drag.
  await page.keyboard.down('Shift');
  await page.mouse.move(box.x + 400, box.y + 300);
  await page.mouse.down();
  await page.mouse.move(box.x + 640, box.y + 300, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  const selection = await timeline('t.selection');
  assert.equal(selection.from, Math.round(await timeline('t.timeAt(400)')));
  assert.equal(selection.to, Math.round(await timeline('t.timeAt(640)')));
});
await step('a link restores the view', async () => {
  await page.selectOption('#second', 'type');
  await until(page, () => decodeURIComponent(location.hash).includes('type'));
  const state = '({ from: Math.round(t.from), span: Math.round(t.span), views: t.views, selection: t.selection, y: Math.round(t.scrollY) })';
  const before = await timeline(state);
  const address = page.url();
  assert.ok(address.includes('views=state'), address);
  await page.goto('about:blank');
  await page.goto(address);
  await ready(page);
  await settled(page);
  const after = await timeline(state);
  assert.ok(Math.abs(after.from - before.from) <= 1 && Math.abs(after.span - before.span) <= 1, JSON.stringify([before, after]));
  assert.deepEqual({ ...after, from: 0, span: 0 }, { ...before, from: 0, span: 0 });
});
await step('keys work before anything has the focus, and after a button had it', async () => {
  await page.evaluate(() => /** @type {HTMLElement} */ (document.activeElement)?.blur());
  await page.keyboard.press('Home');
  const whole = await timeline('t.span');
  await page.keyboard.press('+');
  assert.equal(await timeline('t.span'), whole / 2);
  await page.focus('#keys');
  await page.keyboard.press('+');
  assert.equal(await timeline('t.span'), whole / 4);
  await page.keyboard.press('Enter');
  assert.ok((await page.textContent('#panel')).startsWith('Keys'), 'Enter presses the button');
  await page.focus('#panel');
  await page.keyboard.press('Home');
  assert.equal(await timeline('t.span'), whole / 4, 'the panel scrolls by its own keys');
  await page.focus('canvas.timeline');
  await page.keyboard.press('-');
  assert.equal(await timeline('t.span'), whole / 2, 'once, not twice');
});
await step('the focus stays on its thread when another view is chosen, and legends name what is in sight', async () => {
  await timeline('t.show(0, t.length)');
  await timeline('(t.focusRow = t.rows.indexOf(t.rowOf(5)), t.redraw())');
  await page.selectOption('#second', 'task');
  await page.selectOption('#view', 'type');
  assert.equal(await timeline('t.rows[t.focusRow].track'), 5);
  await settled(page);
  const types = await timeline('t.overview.task_types');
  const legend = () => page.evaluate(() => [...document.querySelectorAll('.legends [aria-label="task type"] li')].map((li) => [li.textContent, li.querySelector('.swatch')?.style.background]));
  await eventually(async () => assert.ok((await legend()).length > 2, String(await legend())));
  const named = (await legend()).slice(1).filter(([label]) => !label.includes('more visible'));
  for (const [label, colour] of named) {
    const slot = types.findIndex((type) => type === label || label.includes('…'));
    const shown = await page.evaluate((number) => { const t = window.taskscope.timeline; const c = t.theme.ordered[number % t.theme.ordered.length]; return `rgb(${c & 255}, ${(c >> 8) & 255}, ${(c >> 16) & 255})`; }, slot);
    if (!label.includes('…')) assert.equal(colour, shown, `${label} has the colour of its row`);
  }
  // Where only one thread's task is in sight, only its type is named.
  const task = expected.task.answer;
  await timeline(`(t.collapsed.clear(), t.show(${task.began} + 200, ${task.began} + 300))`);
  await settled(page);
  await eventually(async () => {
    const inSight = await timeline('[...t.inSight.get("type").keys()].filter((value) => value > 0)');
    assert.deepEqual((await legend()).slice(1).map(([label]) => label).sort(), inSight.map((value) => types[value - 1]).sort());
  });
  await page.click('.chip');
  await page.selectOption('#view', 'state');
  await timeline('t.show(0, t.length)');
});
await step('what hangs at the pointer goes when a measure begins, and arrows when the run is shown', async () => {
  await settled(page);
  const canvas = await page.locator('canvas.timeline').boundingBox();
  const y = await timeline('t.yOf(t.rowOf(5))');
  await page.mouse.move(canvas.x + 500, canvas.y + y);
  await until(page, () => document.getElementById('tip').style.display === 'block');
  await page.keyboard.down('Shift');
  await page.mouse.down();
  assert.equal(await page.evaluate(() => document.getElementById('tip').style.display), 'none');
  await page.mouse.move(canvas.x + 600, canvas.y + y);
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await page.keyboard.press('Escape');
  await page.evaluate((task) => window.taskscope.goToTask(task), expected.task.answer.task_ref);
  assert.ok((await timeline('t.edges.length')) > 0);
  await page.click('#run');
  assert.equal(await timeline('t.edges.length'), 0);
});
await step('on a telephone the timeline has room', async () => {
  for (const [width, height] of [[390, 700], [844, 390]]) {
    await page.setViewportSize({ width, height });
    await settled(page);
    const tall = await page.evaluate(() => document.getElementById('timeline-host').clientHeight);
    assert.ok(tall >= height * 0.4, `${tall} of ${height}`);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
  }
  await page.setViewportSize({ width: 1400, height: 900 });
});
await step('show me frames the worst instance of a finding, explains it, and offers the next one', async () => {
  await page.evaluate(() => window.taskscope.showRun());
  const shown = await page.evaluate(() => [...document.querySelectorAll('#panel .findings li')].filter((line) => line.querySelector('button')).map((line) => line.querySelector('strong').textContent));
  const instances = (await timeline('t.overview.instances')).filter(({ finding }) => shown.includes(finding));
  assert.ok(instances.length > 1, `${instances.length} instances`);
  const framed = async (instance) => {
    await eventually(async () => assert.ok((await page.textContent('#framed')).startsWith(`${instance.finding}: worst instance`)));
    const [from, to, marked] = await timeline('[t.from, t.from + t.span, t.marked]');
    assert.ok(from <= instance.start && to >= instance.end && to - from <= Math.max(20, 2.21 * (instance.end - instance.start)), `${from} ${to} ${JSON.stringify(instance)}`);
    assert.deepEqual(marked, instance);
    const there = await page.evaluate(({ track, start: at }) => window.taskscope.source.json('section', { track, at }), instance);
    assert.ok((await page.textContent('#section-title')).startsWith(there.name), there.name);
  };
  await page.getByRole('button', { name: `Show ${instances[0].finding}`, exact: true }).click();
  await framed(instances[0]);
  await page.locator('#framed button', { hasText: 'next: ' }).click();
  await framed(instances[1]);
  await page.locator('#framed button', { hasText: 'all findings' }).click();
  assert.equal(await timeline('t.span'), expected.length_ns);
  assert.equal(await page.textContent('#panel h2'), 'The run');
});
await step('the keyboard alone reaches a section', async () => {
  await page.focus('canvas.timeline');
  await timeline('(t.focusRow = -1)');
  await page.keyboard.press('Home');
  for (let i = 0; i < 6; i++) await page.keyboard.press('ArrowDown');
  const row = await timeline('t.rows[t.focusRow]');
  assert.equal(row.kind, 'track');
  const cursor = await timeline('t.cursor');
  await page.keyboard.press('.');
  const truth = await page.evaluate(([track, at]) => window.taskscope.source.json('section', { track, at, step: 'next' }), [row.track, cursor]);
  await eventually(async () => assert.equal(await timeline('t.cursor'), truth.start));
  await page.keyboard.press('Enter');
  // Its name comes first, its state below.
  await eventually(async () => assert.ok((await page.textContent('#panel .facts')).startsWith(`state${truth.label}`), await page.textContent('#panel')));
  const named = truth.state === 'task' ? `${truth.name}, ${truth.task_ref.name}` : null;
  if (named) assert.equal(await page.textContent('#section-title'), named);
});
await step('where nothing is, a click and the keys say so', async () => {
  const late = await timeline(`((row) => ({
    ns: row.states.not_started, track: t.overview.tracks.find((track) => track.tid === row.tid && t.overview.processes[track.process].pid === row.pid).track,
  }))(t.overview.report.thread_states.reduce((a, b) => ((a.states.not_started || 0) > (b.states.not_started || 0) ? a : b)))`);
  assert.ok(late.ns > 20, 'one of the threads starts late');
  await timeline(`(t.scroll(t.rowOf(${late.track}).y - t.scrollY - 100), t.show(0, ${late.ns} * 2))`);
  await settled(page);
  const label = await timeline(`t.rowOf(${late.track}).label`);
  const point = await pointOf(late.track, late.ns / 2);
  await page.mouse.click(point.x, point.y);
  await eventually(async () => assert.ok((await page.textContent('#nothing')).startsWith(`${label}: nothing at 0.0`)));
  assert.ok((await page.textContent('#nothing')).endsWith('(not started, or ended)'));
  await page.focus('canvas.timeline');
  await page.keyboard.press(',');
  await eventually(async () => assert.equal(await page.textContent('#live'), `${label}: nothing earlier`));
  await page.click('#run');
  await timeline('t.show(0, t.length)');
});
await step('groups of rows have the focus, and fold by keyboard', async () => {
  await page.focus('canvas.timeline');
  await timeline('(t.focusRow = -1, t.scroll(-1e6))');
  const focused = () => timeline('(({ kind, key, label }) => ({ kind, key, label }))(t.rows[t.focusRow])');
  const said = () => page.textContent('#live');
  // The frame around the focus is drawn at the left edge of its row.
  const framed = async () => {
    await until(page, () => !window.taskscope.timeline.scheduled);
    return timeline(`((row) => {
      const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      copy.drawImage(t.canvas, -Math.round(t.ratio), -Math.round(t.yOf(row) * t.ratio));
      const [red, green, blue] = copy.getImageData(0, 0, 1, 1).data;
      const frame = parseInt(t.theme.marks.finding.slice(1), 16);
      return [red - (frame >> 16), green - (frame >> 8 & 255), blue - (frame & 255)].every((off) => Math.abs(off) < 60);
    })(t.rows[t.focusRow])`);
  };
  const process = await timeline('t.rows.findLastIndex((row) => row.kind === "process")');
  for (let i = 0; i <= process; i++) await page.keyboard.press('ArrowDown');
  const group = await focused();
  assert.equal(group.kind, 'process');
  assert.equal(await said(), group.label);
  assert.ok(await framed(), 'the focus on a process is not seen');
  const rows = await timeline('t.rows.length');
  await page.keyboard.press(' ');
  assert.deepEqual(await focused(), group, 'the focus stays on what was folded');
  assert.equal(await said(), `${group.label}, folded`);
  assert.ok((await timeline('t.rows.length')) < rows && (await framed()));
  await page.keyboard.press('ArrowDown');
  assert.equal(await said(), 'threads by state');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  assert.deepEqual(await focused(), group);
  assert.equal(await said(), group.label);
  assert.equal(await timeline('t.rows.length'), rows);
});
await step('processes fold, and pictures are saved', async () => {
  const before = await timeline('t.rows.length');
  await timeline('t.toggleRow(t.rows.find((row) => row.kind === "process" || row.kind === "node"))');
  assert.ok((await timeline('t.rows.length')) < before);
  for (const kind of ['png', 'svg']) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click(`#${kind}`)]);
    const bytes = readFileSync(await download.path());
    assert.ok(bytes.length > 3000, `${kind} of ${bytes.length} bytes`);
    if (kind === 'svg') {
      // Drawn as a picture, it has the canvas's colours.
      const differing = await page.evaluate(async (text) => {
        const picture = new DOMParser().parseFromString(text, 'image/svg+xml');
        if (picture.querySelector('parsererror')) return picture.documentElement.textContent;
        const t = window.taskscope.timeline;
        const [shapes, rows] = [[...picture.querySelectorAll('rect')], t.visible.filter((row) => row.kind === 'track')];
        const wrong = [];
        const copy = Object.assign(document.createElement('canvas'), { width: t.canvas.width, height: t.canvas.height }).getContext('2d', { willReadFrequently: true });
        copy.drawImage(t.canvas, 0, 0);
        for (const row of rows) {
          for (let x = 200; x < t.width; x += 97) {
            // Above the name of the bar.
            const y = Math.round(t.yOf(row) - row.height / 4);
            const inside = (shape) => ['x', 'y'].every((axis, i) => { const at = [x + 0.5, y][i] - Number(shape.getAttribute(axis)); return at >= 0 && at < Number(shape.getAttribute(['width', 'height'][i])); });
            const drawn = shapes.filter((shape) => shape.getAttribute('width') !== '100%' && inside(shape) && !shape.getAttribute('opacity') && shape.getAttribute('fill') !== 'none').pop();
            const [red, green, blue] = copy.getImageData(Math.round((x + 0.5) * t.ratio - 0.5), Math.round(y * t.ratio), 1, 1).data;
            const hex = `#${[red, green, blue].map((v) => v.toString(16).padStart(2, '0')).join('')}`;
            if (drawn && drawn.getAttribute('fill') !== hex && !drawn.getAttribute('fill-opacity')) wrong.push([row.label, x, drawn.getAttribute('fill'), hex]);
          }
        }
        return rows.length ? wrong.slice(0, 5) : 'no rows';
      }, bytes.toString());
      assert.deepEqual(differing, []);
    } else assert.equal(bytes.subarray(1, 4).toString(), 'PNG');
  }
});
await step('printed from a dark screen the viewer is white and without controls, and goes on afterwards', async () => {
  await page.click('#theme');
  await page.click('#run');
  const rows = await timeline('t.visible.length');
  const paper = await printed(page, 'viewer');
  if (paper) {
    assert.ok(paper.white > 0.4, `${paper.white} of the paper is white`);
    assert.ok(paper.isWide, 'rows have the long side');
    for (const words of ['The run', 'Findings', 'task bodies']) assert.ok(paper.text.includes(words), `${words}: ${paper.text}`);
    assert.ok(!paper.text.includes('PNG'), paper.text);
  }
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(20, 23, 26)');
  assert.ok(await page.evaluate(() => window.taskscope.timeline.canvas.isConnected && window.taskscope.timeline.theme.dark));
  assert.equal(await timeline('t.visible.length'), rows);
  await page.click('#theme');
  await settled(page);
});
await step('two fingers zoom', async () => {
  await timeline(`t.show(0, ${expected.length_ns})`);
  await page.evaluate(() => {
    const canvas = document.querySelector('canvas.timeline');
    const frame = canvas.getBoundingClientRect();
    canvas.setPointerCapture = () => {};
    const send = (type, id, x) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: id, pointerType: 'touch', clientX: frame.left + x, clientY: frame.top + 200, button: 0, bubbles: true }));
    send('pointerdown', 11, 500); send('pointerdown', 12, 600);
    send('pointermove', 11, 450); send('pointermove', 12, 650);
    send('pointerup', 11, 450); send('pointerup', 12, 650);
  });
  const span = await timeline('t.span');
  assert.ok(Math.abs(span - expected.length_ns / 2) < expected.length_ns / 50, `${span}`);
});
await step('it asked nothing but its own server, and logged no error', async () => {
  const origin = new URL(expected.address).origin;
  assert.deepEqual(two.requests.filter((url) => !url.startsWith(origin) && !url.startsWith('blob:') && url !== 'about:blank'), []);
  assert.deepEqual(two.problems, []);
});
await two.close();
passed();
