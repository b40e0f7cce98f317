// Drives the report like a reader does, and compares what it shows with the library's answers.
// Started by crates/view/tests/browser.rs with a folder that holds pages, report.json and expected.json: addresses, and the library's answers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually, passed, ready, startBrowser, step, until } from './browser.js';
import { printed, sheetsOf } from './paper.js';

const [folder] = process.argv.slice(2);
const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'));
const GUTTER = 150;

/** The value at a path like `findings.0.ns`. */
const valueAt = (root, path) => path.split('.').reduce((value, key) => (value === null || value === undefined ? undefined : value[key]), root);

/** Waits until a picture that has another size has it on the screen: what hangs at the pointer goes then. @param {import('playwright-core').Page} page */
const twoFrames = (page) => page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));

const one = await startBrowser({ width: 1200, height: 900 });
await step('the report opens from its file without a request or an error', async () => {
  await one.page.goto(pathToFileURL(join(folder, 'report.html')).href);
  await ready(one.page);
  await one.page.waitForTimeout(200);
  assert.deepEqual(one.requests.filter((url) => !url.startsWith('file:')), []);
  assert.equal(one.requests.length, 1);
  assert.deepEqual(one.problems, []);
});
await step('numbers on the page equal those of report --json', async () => {
  const shown = await one.page.evaluate(() => [...document.querySelectorAll('[data-path]')].map((e) => [e.dataset.path, e.dataset.value, e.textContent]));
  assert.ok(shown.length >= 15, `${shown.length} numbers`);
  for (const [path, value, text] of shown) {
    const truth = valueAt(report, path);
    assert.equal(value, truth === null || truth === undefined ? '' : String(truth), path);
    assert.notEqual(text, '', path);
  }
  // The date has more digits than numbers of JavaScript; both are read in the same way.
  assert.deepEqual(JSON.parse(await one.page.textContent('#report')), report);
  const first = await one.page.evaluate(() => {
    const [titles, row] = [...document.querySelectorAll('#tables table')].find((t) => t.caption.textContent === 'Task types').rows;
    return Object.fromEntries([...titles.cells].map((title, i) => [title.textContent, row.cells[i].textContent.replace(/\D/g, '')]));
  });
  assert.equal(first.began, String(report.task_types[0].began));
  const several = new Set(report.task_types.map((row) => row.pid)).size > 1;
  assert.equal(first.process, several ? String(report.task_types[0].pid) : undefined);
});
await step('the verdict is above everything, and the run has its date', async () => {
  const [first, verdict, facts] = await one.page.evaluate(() => [document.querySelector('main > header').nextElementSibling.className, document.querySelector('.verdict').textContent, document.querySelector('#what').textContent]);
  assert.deepEqual([first, verdict], ['verdict', report.verdict]);
  assert.ok(facts.includes('started2026-11-27 22:39:36 UTC'), facts);
});
await step('the largest loss is marked', async () => {
  const { efficiency: e } = report;
  const losses = { 'Load balance': e.load_balance_loss_ns, Serialization: e.serialization_loss_ns, 'Runtime overhead': e.runtime_overhead_loss_ns, Known: e.unknown_ns };
  const largest = Math.max(...Object.values(losses));
  const marked = await one.page.evaluate(() => [...document.querySelectorAll('#efficiency li')].filter((li) => li.querySelector('strong')).map((li) => li.querySelector('.label').textContent));
  assert.deepEqual(marked, Object.keys(losses).filter((name) => losses[name] === largest));
});
await step('names with markup are text', async () => {
  assert.equal(await one.page.locator('main b').count(), 0);
  assert.ok((await one.page.textContent('#tables')).includes('<b>exchange</b>'));
});
await step('every part of the report is there, in the order of a reader\'s questions', async () => {
  const ids = await one.page.evaluate(() => [...document.querySelectorAll('main > section')].map((e) => e.id));
  const order = ['what', 'efficiency', 'findings', 'overview', 'tables', 'call-paths', 'breakdown', 'critical-path', 'how'];
  assert.deepEqual(ids, order.filter((id) => ids.includes(id)));
  for (const id of order) assert.ok(ids.includes(id), id);
});
await step('call paths are as wide as their time, top-down and bottom-up, and by keyboard', async () => {
  const frames = () => one.page.evaluate(() => [...document.querySelectorAll('.icicle .frame')].map((f) => [f.textContent.replace(/ [\d.]+ %$/, ''), Math.round(parseFloat(f.style.width) * 10), parseInt(f.style.top, 10)]));
  const top = await frames();
  assert.deepEqual(top.slice(0, 2), [['all', 1000, 0], ['main', 1000, 19]]);
  assert.deepEqual(top.filter(([name]) => name === 'solve')[0].slice(1), [900, 38]);
  assert.deepEqual(top.filter(([name]) => name === '<b>trsm</b>')[0].slice(1), [200, 57]);
  assert.deepEqual(top.filter(([name]) => name === '\ufffdwrite\ufffd')[0].slice(1), [100, 38], 'nothing turns the letters around');
  await one.page.focus('.icicle .frame:nth-child(3)');
  await one.page.keyboard.press('Enter');
  assert.deepEqual((await frames()).filter(([name]) => name === 'solve')[0].slice(1), [1000, 38]);
  await one.page.click('#call-paths > button');
  const bottom = await frames();
  assert.deepEqual(bottom.filter(([name, , depth]) => name === 'gemm' && depth === 19)[0].slice(1), [700, 19]);
});
await step('the overview draws, zooms by keys, and turns dark', async () => {
  const coloured = () => one.page.evaluate(() => {
    const canvas = document.querySelector('#overview canvas');
    const t = window.taskscope.timeline;
    const { data } = canvas.getContext('2d').getImageData(160, Math.round(t.yOf(t.rowOf(5)) * t.ratio), 800, 1);
    return new Set(new Uint32Array(data.buffer)).size;
  });
  await until(one.page, () => !window.taskscope.timeline.scheduled);
  assert.ok((await coloured()) > 2, 'a row of one colour');
  await one.page.focus('#overview canvas');
  await one.page.keyboard.press('+');
  assert.equal(Math.round(await one.page.evaluate(() => window.taskscope.timeline.span * 2)), report.wall_ns);
  await one.page.click('#theme');
  assert.equal(await one.page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(20, 23, 26)');
  assert.equal(Math.round(await one.page.evaluate(() => window.taskscope.timeline.span * 2)), report.wall_ns, 'other colours show the same time');
  await one.page.evaluate(() => { const t = window.taskscope.timeline; t.show(0, t.length); });
});
await step('the row of all workers has the times of the report, and not those of the states that lead', async () => {
  const shares = await one.page.evaluate(() => {
    const t = window.taskscope.timeline;
    const [pixels, states] = [800, t.overview.states.length];
    const found = t.source.stack('all', [], 0, t.length / pixels, pixels, states);
    return t.overview.states.map((state, number) => [state.name, Array.from({ length: pixels }, (_, x) => found[x * states + number]).reduce((a, b) => a + b, 0) / pixels]);
  });
  // A thread that is not there is drawn as nothing.
  for (const [name, share] of shares.filter(([name]) => !['not_started', 'ended'].includes(name))) {
    // The test's report lists each thread several times, to have a long table.
    const ns = report.thread_states.filter((row) => row.worker).slice(0, report.workers).reduce((sum, row) => sum + (row.states[name] || 0), 0);
    assert.ok(Math.abs(share - ns / report.wall_ns) < 0.001 * report.workers, `${name}: ${share} of ${ns / report.wall_ns} workers`);
  }
  assert.ok(shares.filter(([, share]) => share > 0.01).length > 3);
});
await step('the file says that a folded group is approximate, while one is folded', async () => {
  const told = () => one.page.locator('#folded').isVisible();
  const toggle = () => one.page.evaluate(() => { const t = window.taskscope.timeline; t.toggleRow(t.rows.find((row) => row.kind === 'process')); });
  assert.equal(await told(), false);
  await toggle();
  await eventually(async () => assert.equal(await told(), true));
  assert.ok((await one.page.textContent('#folded')).includes('only the leading state'));
  await toggle();
  await eventually(async () => assert.equal(await told(), false));
});
await step('resting on a row of the file tells the state that leads there', async () => {
  await one.page.locator('#overview canvas').scrollIntoViewIfNeeded();
  const canvas = await one.page.locator('#overview canvas').boundingBox();
  const title = () => one.page.evaluate(() => document.querySelector('.timeline-host').title);
  const words = new Set();
  for (let x = 151; x < canvas.width; x += 23) {
    const [y, label, state] = await one.page.evaluate((x) => {
      const t = window.taskscope.timeline;
      const row = t.rowOf(x % 8);
      const column = Uint32Array.of(255);
      t.source.columns('state', x % 8, Math.floor(t.timeAt(x)), 1, column, null);
      return [t.yOf(row), row.label, (column[0] & 255) === 255 ? 'nothing' : t.overview.states[column[0] & 255].label];
    }, x);
    await one.page.mouse.move(canvas.x + x, canvas.y + y);
    const told = await title();
    assert.ok(told.startsWith(`${label} at 0.`) && (told.endsWith(`: ${state}`) || told.endsWith(`: mostly ${state}`)), `${told} of ${state}`);
    words.add(state);
  }
  assert.ok(words.size > 1, [...words].join());
  await one.page.mouse.move(5, 5);
  assert.equal(await title(), '');
});
await step('resting on states of many threads, numbers and folded groups tells what is there', async () => {
  await one.page.locator('#overview canvas').scrollIntoViewIfNeeded();
  /** What the pointer is told on a row. @param {number} index @param {number} x */
  const told = async (index, x) => {
    const y = await one.page.evaluate((index) => { const t = window.taskscope.timeline; const row = t.rows[index]; t.scroll(row.y - t.scrollY - 60); return t.yOf(row); }, index);
    await twoFrames(one.page);
    const canvas = await one.page.locator('#overview canvas').boundingBox();
    await one.page.mouse.move(5, 5);
    await one.page.mouse.move(canvas.x + x, canvas.y + y);
    return one.page.evaluate(() => document.querySelector('.timeline-host').title);
  };
  // A bucket of the row of all workers is some fifty pixels wide; what is told of its middle is the bucket's.
  const [x, all, width, truth] = await one.page.evaluate(() => {
    const t = window.taskscope.timeline;
    const { level, first_bucket_ns: offset, buckets, states, data } = t.overview.stack;
    const [width, bucket] = [2 ** level, Math.floor(buckets * 0.4)];
    t.show(offset + bucket * width, offset + (bucket + 20) * width);
    const at = offset + (bucket + 10.5) * width;
    const threads = t.overview.states.map((state, i) => [data[(bucket + 10) * states + i] / 1000, state.label]);
    return [t.xOf(at), t.rows.findIndex((row) => row.key === 'all'), width, threads.filter(([count]) => count >= 0.005).sort((a, b) => b[0] - a[0])];
  });
  const words = await told(all, x);
  assert.ok(words.startsWith('workers by state at 0.') && words.includes(` of ${report.workers} workers `), words);
  assert.ok(truth.length > 0 && truth.slice(0, 6).every(([threads, label]) => words.includes(` ${threads.toFixed(2)} ${label}`)), `${words} of ${JSON.stringify(truth)}`);
  assert.ok(words.endsWith(width < 1000 ? `(in ${width} ns)` : `(in ${(width / 1000).toPrecision(3)} µs)`), `${words}: a bucket of ${width} ns`);
  const [type, counter, ofType, ofCounter] = await one.page.evaluate((x) => {
    const t = window.taskscope.timeline;
    const { types, counter_rows: counters } = t.overview;
    const bucket = ({ level, first_bucket_ns: offset }) => Math.floor((t.timeAt(x) - offset) / 2 ** level);
    const row = counters.find((one) => one.mean[bucket(one)] !== null);
    return [t.rows.findIndex((row) => row.slot === 0), t.rows.findIndex((one) => one.counter === row.name), types.data[bucket(types) * types.labels.length] / 1000, [row.min, row.max, row.mean].map((numbers) => numbers[bucket(row)])];
  }, x);
  assert.ok((await told(type, x)).includes(`: ${ofType.toFixed(2)} threads on average (in `), `${await told(type, x)}: ${ofType}`);
  const [min, max, mean] = ofCounter;
  assert.ok((await told(counter, x)).includes(`: from ${min} to ${max}, mean ${mean.toFixed(2)} (in `), `${await told(counter, x)}: ${ofCounter}`);
  assert.equal(await told(all, 20), '', 'the name of a row says nothing');
  const [group, threads] = await one.page.evaluate(() => {
    const t = window.taskscope.timeline;
    const row = t.rows.find((row) => row.kind === 'process');
    t.toggleRow(row);
    return [t.rows.findIndex((one) => one.key === row.key), row.tracks.length];
  });
  const states = await one.page.evaluate(() => window.taskscope.timeline.overview.states.map((state) => state.label));
  for (const place of [20, x]) {
    const [, rows, state] = /: (\d+) rows folded, mostly (.+) \(in [^)]+\)$/.exec(await told(group, place)) || [];
    assert.ok(Number(rows) === threads && states.includes(state), await told(group, place));
  }
  assert.ok((await told(group + 1, x)).includes(`: of ${threads} threads `), await told(group + 1, x));
  const view = await one.page.evaluate(() => {
    const t = window.taskscope.timeline;
    t.collapsed.clear();
    t.toggleRow(t.rows.find((row) => row.key === 'tasks'));
    return [t.rows.findIndex((row) => row.key === 'tasks'), t.overview.task_types.length + t.overview.counters.length];
  });
  assert.ok((await told(view[0], x)).includes(`: ${view[1]} rows folded (in `), await told(view[0], x));
  await one.page.evaluate(() => { const t = window.taskscope.timeline; t.collapsed.clear(); t.resize(); t.show(0, t.length); t.scroll(-1e6); });
  await one.page.mouse.move(5, 5);
});
await step('those who do not see the file hear which row has the focus, and what is at the cursor', async () => {
  await one.page.focus('#overview canvas');
  await one.page.evaluate(() => { const t = window.taskscope.timeline; t.focusRow = -1; });
  const live = () => one.page.evaluate(() => { const e = document.getElementById('live'); return [e.getAttribute('aria-live'), e.textContent]; });
  const heard = new Set();
  for (let i = 0; i < 7; i++) {
    await one.page.keyboard.press('ArrowDown');
    const [label, kind] = await one.page.evaluate(() => { const t = window.taskscope.timeline; return [t.rows[t.focusRow].label, t.rows[t.focusRow].kind]; });
    const [polite, words] = await live();
    assert.equal(polite, 'polite');
    if (kind === 'track') assert.match(words, new RegExp(`^${label.replace(/[()]/g, '.')} at 0\\.\\d+ s: .`));
    else assert.equal(words, label);
    heard.add(words);
  }
  assert.equal(heard.size, 7);
  const label = await one.page.evaluate(() => { const t = window.taskscope.timeline; t.focusRow = t.rows.findIndex((row) => row.kind === 'process'); return t.rows[t.focusRow].label; });
  for (const end of [', folded', '']) {
    await one.page.keyboard.press(' ');
    assert.equal((await live())[1], `${label}${end}`);
  }
});
await step('the picture is as tall as its rows, also when groups are folded', async () => {
  const heights = () => one.page.evaluate(() => { const t = window.taskscope.timeline; return [t.canvas.clientHeight, t.total + 24, document.querySelector('.timeline-host').clientHeight]; });
  await one.page.evaluate(() => { const t = window.taskscope.timeline; t.fixedHeight = 10000; t.resize(); });
  const before = await heights();
  assert.deepEqual(before, [before[1], before[1], before[1]]);
  await one.page.evaluate(() => { const t = window.taskscope.timeline; t.toggleRow(t.rows.find((row) => row.kind === 'view')); });
  const folded = await heights();
  assert.ok(folded[1] < before[1]);
  assert.deepEqual(folded, [folded[1], folded[1], folded[1]]);
  await one.page.evaluate(() => { const t = window.taskscope.timeline; t.toggleRow(t.rows.find((row) => row.kind === 'view')); });
  assert.deepEqual(await heights(), before);
  await one.page.evaluate(() => { const t = window.taskscope.timeline; t.fixedHeight = 520; t.resize(); });
});
await step('no words lie over the bars of numbers, however narrow the page is', async () => {
  for (const width of [420, 1200]) {
    await one.page.setViewportSize({ width, height: 900 });
    await until(one.page, () => Math.abs(document.querySelector('.timeline-host').clientWidth - window.taskscope.timeline.width) < 2);
    const drawn = await one.page.evaluate(() => {
      const t = window.taskscope.timeline;
      t.scroll(1e6);
      const words = [];
      t.context.fillText = (text, x, y) => words.push([text, x, x + t.context.measureText(text).width, y]);
      t.draw();
      delete t.context.fillText;
      const rows = t.visible.filter((row) => row.kind === 'counter').map((row) => [24 + row.y - t.scrollY, row.height]);
      t.scroll(-1e6);
      return rows.map(([top, tall]) => words.filter(([, , , y]) => y >= top && y < top + tall));
    });
    assert.ok(drawn.length > 3);
    for (const words of drawn) assert.ok(words.length > 0 && words.every(([, left, right]) => left >= 0 && right <= GUTTER), JSON.stringify(words));
    // The name and the largest number, one below the other.
    assert.ok(drawn.some((words) => words.length === 2 && words.some(([text]) => /^max \d/.test(text)) && Math.abs(words[0][3] - words[1][3]) >= 8), JSON.stringify(drawn));
  }
});
await step('a wheel or a finger over rows that are all in sight scrolls the page', async () => {
  const turned = () => one.page.evaluate(() => {
    const event = new WheelEvent('wheel', { deltaY: 120, cancelable: true });
    window.taskscope.timeline.canvas.dispatchEvent(event);
    return [event.defaultPrevented, window.taskscope.timeline.canvas.style.touchAction, window.taskscope.timeline.mostScroll > 0];
  });
  const [taken, touch, more] = await turned();
  assert.deepEqual([taken, touch], more ? [true, 'none'] : [false, 'pan-y']);
  await one.page.evaluate(() => { const t = window.taskscope.timeline; t.fixedHeight = t.total + 100; t.resize(); });
  assert.deepEqual(await turned(), [false, 'pan-y', false]);
  await one.page.evaluate(() => { const t = window.taskscope.timeline; t.fixedHeight = 120; t.resize(); });
  assert.deepEqual(await turned(), [true, 'none', true]);
  await one.page.evaluate(() => { const t = window.taskscope.timeline; t.fixedHeight = 520; t.resize(); t.scroll(-1e6); });
});
await step('steps of the critical path lie at their time', async () => {
  const [path, drawn] = await one.page.evaluate(() => [window.taskscope.timeline.overview.critical_path, [...document.querySelectorAll('.strip span')].map((e) => [parseFloat(e.style.left), parseFloat(e.style.width)])]);
  assert.equal(drawn.length, path.steps.length);
  path.steps.forEach((step, i) => {
    assert.ok(Math.abs(drawn[i][0] - ((step.begin_ns - path.begin_ns) * 100) / path.wall_ns) < 0.01, `step ${i} at ${drawn[i][0]} %`);
    assert.ok(drawn[i][0] + drawn[i][1] < 100.01);
  });
  assert.equal((await one.page.textContent('#critical-path')).includes('longest of'), Boolean(path.steps_in_all));
  // What a step was in is told as in the text: of one task type there are several.
  const rows = await one.page.evaluate(() => [...document.querySelectorAll('#critical-path tbody tr')].map((row) => row.cells[1].textContent));
  const wanted = path.by_cause.map(({ name, task_type: type }) => (name && type ? `${name} (${type})` : name || type || '–'));
  assert.deepEqual(rows, wanted.slice(0, rows.length));
  assert.ok(path.by_cause.slice(0, rows.length).some((row) => row.name));
});
await step('everything in the report is reached by keyboard alone, has a name and shows its focus', async () => {
  await one.page.evaluate(() => { window.scrollTo(0, 0); /** @type {HTMLElement} */ (document.activeElement)?.blur(); });
  const wanted = await one.page.evaluate(() => {
    document.querySelectorAll('details').forEach((part) => { part.open = true; });
    return [...document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')].filter((e) => e.checkVisibility()).map((e, i) => { e.dataset.stop = String(i); return i; });
  });
  const reached = new Set();
  for (let i = 0; i < wanted.length + 5; i++) {
    await one.page.keyboard.press('Tab');
    const at = await one.page.evaluate(() => {
      const e = document.activeElement;
      const style = getComputedStyle(e);
      return { stop: e.dataset.stop, name: e.getAttribute('aria-label') || e.textContent, outline: style.outlineStyle, wide: parseFloat(style.outlineWidth) };
    });
    if (at.stop === undefined) continue;
    reached.add(Number(at.stop));
    assert.ok(at.name && at.name.trim(), `stop ${at.stop} has no name`);
    assert.ok(at.outline === 'solid' && at.wide >= 2, `the focus on ${at.name} is not seen: ${at.outline} ${at.wide}`);
  }
  assert.deepEqual([...reached].sort((a, b) => a - b), wanted);
  await one.page.evaluate(() => document.querySelectorAll('details').forEach((part) => { part.open = false; }));
});
await step('rows that wait behind a button and the colours come by keyboard, and the focus stays near', async () => {
  const more = one.page.locator('.table button.more:visible').first();
  const table = await one.page.evaluate(() => document.querySelector('.table:has(button.more:not([hidden])) caption').textContent);
  const rows = () => one.page.evaluate((name) => [...document.querySelectorAll('table')].find((t) => t.caption.textContent === name).tBodies[0].rows.length, table);
  const promised = Number((await more.textContent()).replace(/\D/g, ''));
  assert.equal(await rows(), 12);
  await more.focus();
  await one.page.keyboard.press('Enter');
  assert.equal(await rows(), promised);
  assert.equal(await one.page.evaluate((name) => document.activeElement.closest('table')?.caption.textContent === name, table), true);
  const theme = () => one.page.evaluate(() => [document.documentElement.dataset.theme, document.activeElement.id]);
  await one.page.focus('#theme');
  await one.page.keyboard.press('Enter');
  assert.deepEqual(await theme(), ['light', 'theme']);
  assert.equal(await rows(), promised, 'the table stays open');
  await one.page.focus('#overview canvas');
  for (const event of ['beforeprint', 'afterprint']) await one.page.evaluate((name) => window.dispatchEvent(new Event(name)), event);
  assert.equal(await one.page.evaluate(() => document.activeElement.className), 'timeline', 'paper takes no focus away');
  await one.page.focus('#theme');
  await one.page.keyboard.press('Enter');
  assert.deepEqual(await theme(), ['dark', 'theme']);
});
await step('a title sorts a table, both ways, and back from paper it is still sorted', async () => {
  const tool = (caption) => one.page.locator(`#tables .table:has(caption:text-is("${caption}"))`);
  const states = tool('Where the time of the workers went');
  const values = () => states.locator('tbody tr').evaluateAll((rows) => rows.map((row) => Number(row.cells[2].dataset.value)));
  const sorts = () => states.locator('thead th').evaluateAll((cells) => cells.map((cell) => cell.getAttribute('aria-sort')).filter((sort) => sort));
  const title = states.locator('thead th button').nth(2);
  for (const [sort, order] of [['descending', (a, b) => b - a], ['ascending', (a, b) => a - b]]) {
    await title.click();
    assert.deepEqual(await sorts(), [sort]);
    const most = (await states.locator('button.more').isHidden()) ? Infinity : 12;
    assert.deepEqual(await values(), report.causes.map((row) => row.ns).sort(order).slice(0, most), sort);
  }
  const before = await values();
  for (const event of ['beforeprint', 'afterprint']) await one.page.evaluate((name) => window.dispatchEvent(new Event(name)), event);
  assert.deepEqual(await values(), before);
  // Words begin with the first letter.
  await states.locator('thead th button').nth(0).focus();
  await one.page.keyboard.press('Enter');
  const names = await states.locator('tbody th').allTextContents();
  assert.deepEqual(names, [...names].sort((a, b) => a.localeCompare(b, 'en', { numeric: true })));
});
await step('a table shows the rows with the typed words, and copies them as CSV that no spreadsheet computes', async () => {
  const types = one.page.locator('#tables .table:has(caption:text-is("Task types"))');
  const word = report.task_types[0].name.split(' ')[0];
  const wanted = report.task_types.filter((row) => row.name.includes(word));
  assert.ok(wanted.length < report.task_types.length);
  await types.locator('input').fill(word.toUpperCase());
  assert.equal(await types.locator('tbody tr').count(), wanted.length);
  assert.match(await types.locator('[role=status]').textContent(), new RegExp(`^${wanted.length} of ${report.task_types.length} rows contain`));
  await one.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await types.locator('button.copy').click();
  await eventually(async () => assert.equal(await types.locator('button.copy').textContent(), 'copied'));
  const [titles, first, ...rest] = (await one.page.evaluate(() => navigator.clipboard.readText())).trimEnd().split(/\r?\n/);
  assert.match(titles, /^task type,.*in bodies \(all threads\) \(ns\)/);
  assert.ok(first.includes(`,${wanted[0].body_ns},`), first);
  assert.equal(rest.length, wanted.length - 1);
  await types.locator('input').fill('');
  assert.equal(await types.locator('tbody tr').count(), Math.min(12, report.task_types.length));
  const csv = await one.page.evaluate(() => window.taskscope.csvOf([{ title: 'a', cell: (row) => row }, { title: 'n', ns: true, value: () => -1, cell: () => '' }], ['=1+1', '-2+3', '@x', 'a,"b"', '−1']));
  assert.equal(csv, "a,n (ns)\r\n'=1+1,-1\r\n'-2+3,-1\r\n'@x,-1\r\n\"a,\"\"b\"\"\",-1\r\n−1,-1\r\n");
});
await step('the largest findings are cards with share and advice, and show me frames the instance', async () => {
  const large = report.findings.filter((finding) => finding.ns * 100 >= report.findings_base_ns);
  const cards = await one.page.locator('.cards .finding').evaluateAll((list) => list.map((e) => [e.id, parseFloat(e.querySelector('.fill').style.width), e.textContent]));
  assert.deepEqual(cards.map(([id]) => id), large.slice(0, 3).map((finding) => finding.id));
  cards.forEach(([id, wide, text], i) => {
    assert.ok(Math.abs(wide - (large[i].ns / report.findings_base_ns) * 100) < 0.01, `${id} is ${wide} % wide`);
    if (large[i].try) assert.ok(text.includes('Try: '), id);
    assert.ok(!/`[^`]+`/.test(text), `${id}: code of the advice is shown as code, not in backticks`);
  });
  assert.deepEqual(await one.page.locator('.further .finding').evaluateAll((list) => list.map((e) => e.id)), large.slice(3).map((finding) => finding.id));
  const instances = await one.page.evaluate(() => window.taskscope.timeline.overview.instance_sections);
  const look = () => one.page.evaluate(() => {
    const { selection, from, span, rows, focusRow } = window.taskscope.timeline;
    return { selection: { ...selection }, from, to: from + span, track: rows[focusRow].track };
  });
  const shows = one.page.locator('.cards button.show');
  const [first] = instances;
  await shows.first().click();
  let seen = await look();
  assert.deepEqual([seen.selection.from, seen.selection.to, seen.track], [first.start, first.end, first.tracks[0].track]);
  assert.ok(seen.from <= first.start && seen.to >= first.end, JSON.stringify(seen));
  assert.match(await one.page.textContent('#framed'), new RegExp(`^${first.finding} .*worst instance`));
  await one.page.locator('#framed button', { hasText: 'next' }).click();
  seen = await look();
  assert.equal(seen.selection.from, instances[1].start);
  await one.page.locator('#framed button', { hasText: 'whole run' }).click();
  seen = await look();
  assert.deepEqual([seen.from, seen.to], [0, await one.page.evaluate(() => window.taskscope.timeline.length)]);
  assert.equal(await one.page.isHidden('#framed'), true);
});
await step('by keyboard alone a finding is framed, and Escape leads back to it', async () => {
  const at = () => one.page.evaluate(() => [document.activeElement?.getAttribute('aria-label') || document.activeElement?.textContent, Boolean(document.activeElement?.closest('#framed'))]);
  const instances = await one.page.evaluate(() => window.taskscope.timeline.overview.instance_sections);
  await one.page.locator('.cards button.show').first().focus();
  const [opener] = await at();
  await one.page.keyboard.press('Enter');
  assert.deepEqual(await at(), [`next: ${instances[1].finding}`, true]);
  await one.page.keyboard.press('Enter');
  assert.equal((await at())[1], true, 'the next finding keeps the focus');
  assert.equal(await one.page.evaluate(() => window.taskscope.timeline.selection.from), instances[1].start);
  await one.page.keyboard.press('Escape');
  assert.deepEqual(await at(), [opener, false]);
  assert.equal(await one.page.isHidden('#framed'), true);
  // What is selected can also be left at the timeline.
  await one.page.keyboard.press('Enter');
  await one.page.focus('#overview canvas.timeline');
  await one.page.keyboard.press('Escape');
  assert.equal(await one.page.isHidden('#framed'), true);
  await one.page.evaluate(() => window.taskscope.timeline.show(0, window.taskscope.timeline.length));
  // A bar of call paths keeps the focus, and the bars above it lead back.
  const bars = one.page.locator('#call-paths .frame');
  await bars.nth(1).focus();
  const [name] = await at();
  await one.page.keyboard.press('Enter');
  assert.deepEqual([await at(), await one.page.evaluate(() => document.activeElement.style.width)], [[name, false], '100%']);
  await one.page.keyboard.press('Shift+Tab');
  await one.page.keyboard.press('Enter');
  assert.ok((await at())[0].startsWith('all: '));
});
await step('on paper it is light, narrow and without buttons, and afterwards as before', async () => {
  const look = () => one.page.evaluate(() => ({
    theme: document.documentElement.dataset.theme, dark: getComputedStyle(document.body).backgroundColor === 'rgb(20, 23, 26)',
    width: document.querySelector('canvas.timeline').clientWidth, buttons: document.querySelectorAll('.table button').length,
    rows: Math.max(...[...document.querySelectorAll('table')].map((t) => t.tBodies[0].rows.length)),
  }));
  const before = await look();
  await one.page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  const printed = await look();
  assert.deepEqual([printed.theme, printed.dark, printed.width, printed.buttons], ['light', false, 700, 0]);
  assert.ok(printed.rows <= 8, `${printed.rows} rows`);
  assert.ok(before.rows > 12, `${before.rows} rows on screen`);
  await one.page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
  const after = await look();
  assert.deepEqual([after.theme, after.dark, after.width], [before.theme, true, before.width]);
});
await step('printed from a dark screen the report is white, and all its parts and threads are there', async () => {
  assert.equal(await one.page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  const paper = await printed(one.page, 'report');
  if (paper) {
    assert.ok(paper.white > 0.6, `${paper.white} of the paper is white`);
    assert.ok(paper.pages > 1 && paper.pages <= 4 && !paper.isWide, `${paper.pages} pages`);
    assert.match(paper.text, /Not printed: \d+ more rows/);
    for (const words of ['What ran', 'Efficiency', 'Findings', 'Overview', '<b>exchange</b>', 'Critical path', 'How it was computed']) assert.ok(paper.text.includes(words), words);
    assert.ok(!/all \d+ rows|save the report/.test(paper.text), 'a button is printed');
  }
  // Every row of the overview lies in one of the pictures; the last one ends with the last row.
  await one.page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  const [pictures, t] = await one.page.evaluate(() => [
    [...document.querySelectorAll('#overview canvas')].map((c) => [parseFloat(c.style.height), c.getContext('2d').getImageData(2, 2, 1, 1).data[0]]),
    { total: window.taskscope.timeline.total, page: getComputedStyle(document.body).backgroundColor },
  ]);
  const RULER = 24;
  assert.equal(pictures.reduce((sum, [tall]) => sum + tall - RULER, 0), t.total);
  assert.ok(pictures.every(([tall, corner]) => tall <= 960 && corner === 255), JSON.stringify(pictures));
  assert.equal(t.page, 'rgb(255, 255, 255)');
  await one.page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
});
await step('on paper no heading stands alone at the foot of a page, and no finding is cut', async () => {
  // Low sheets have many feet.
  const sheets = await sheetsOf(one.page, 'low', { width: '800px', height: '430px' });
  if (!sheets) return;
  assert.ok(sheets.length > 10, `${sheets.length} sheets`);
  const [headings, findings] = await one.page.evaluate(() => [
    [...document.querySelectorAll('h2, h3, h4, caption, thead tr')].map((e) => (e.cells ? [...e.cells] : [e]).map((part) => part.textContent.trim()).filter((text) => text).join(' ')),
    [...document.querySelectorAll('.finding')].filter((e) => !e.closest('.brief')).map((e) => [e.id, e.querySelector('p').textContent.trim().slice(0, 30), e.querySelector('figcaption')?.textContent ?? '']),
  ]);
  const plain = (text) => text.replace(/\s+/g, ' ').trim();
  const feet = sheets.map((sheet) => plain(sheet.trimEnd().split('\n').pop()));
  assert.deepEqual(feet.filter((foot) => foot && headings.map(plain).includes(foot)), []);
  assert.ok(findings.length > 1);
  for (const [id, ...parts] of findings) assert.ok(sheets.some((sheet) => [`${id} `, ...parts].every((words) => plain(sheet).includes(plain(words)))), `${id} is cut`);
});
await step('a program that only says that the medium is paper gets the same page, and the screen comes back', async () => {
  const look = () => one.page.evaluate(() => [document.documentElement.dataset.printing !== undefined, document.documentElement.dataset.theme, document.querySelector('canvas.timeline').clientWidth, getComputedStyle(document.querySelector('nav')).display]);
  const before = await look();
  await one.page.emulateMedia({ media: 'print' });
  await eventually(async () => assert.deepEqual(await look(), [true, 'light', 700, 'none']));
  await one.page.emulateMedia({ media: null });
  await eventually(async () => assert.deepEqual(await look(), before));
});
assert.deepEqual(one.problems, []);
await one.close();
passed();
