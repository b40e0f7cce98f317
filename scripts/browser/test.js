// Drives the report and the viewer like a reader does and compares what they show with the library's
// answers. Started by crates/view/tests/browser.rs with a folder that holds
//   report.html, report.json (the library's report), expected.json (answers), and the viewer's address.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually, passed, ready, settled, startBrowser, step, until } from './browser.js';

const [folder] = process.argv.slice(2);
const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'));
const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'));
const GUTTER = 150;
/** The second queue of the traces of queues alone: of the sixty marks over one letter three are left. */
const PILED = 'que\u0301\u0301\u0301ue\n2';

/** Runs one of the programs that read PDF files. @param {string} program @param {string[]} words */
function read(program, ...words) {
  const { error, status, stdout } = spawnSync(program, words, { maxBuffer: 1 << 28 });
  if (error || status !== 0) throw new Error(`${program} ${words.join(' ')}: ${error || status}`);
  return stdout;
}

/**
 * Prints a page; null where nobody can read what was printed.
 * @param {import('playwright-core').Page} page
 * @param {string} name
 * @param {{[name: string]: any}} options
 * @returns {Promise<string | null>} the file
 */
async function print(page, name, options) {
  const path = join(folder, `${name}.pdf`);
  await page.pdf({ ...options, path });
  if (!spawnSync('pdfinfo', ['-v']).error) return path;
  console.error(`skipped: reading ${name}.pdf, as there is no pdfinfo (apt-get install poppler-utils)`);
  return null;
}

/** The text of each sheet. @param {import('playwright-core').Page} page @param {string} name @param {{[name: string]: any}} options */
async function sheetsOf(page, name, options) {
  const path = await print(page, name, options);
  return path && read('pdftotext', '-layout', path, '-').toString().split('\f').slice(0, -1);
}

/**
 * The paper of a page: its text, how much of the first sheet is white, how many sheets, how wide and high they are.
 * @param {import('playwright-core').Page} page
 * @param {string} name
 */
async function printed(page, name) {
  const path = await print(page, name, { format: 'A4', preferCSSPageSize: true });
  if (!path) return null;
  const info = read('pdfinfo', path).toString();
  const image = read('pdftoppm', '-gray', '-r', '30', '-f', '1', '-l', '1', path);
  const [header, width, height] = /^P5\s+(\d+)\s+(\d+)\s+255\s/.exec(image.subarray(0, 40).toString('latin1'));
  const points = image.subarray(header.length);
  assert.equal(points.length, Number(width) * Number(height));
  return {
    text: read('pdftotext', '-layout', path, '-').toString().replace(/\s+/g, ' '), pages: Number(/Pages:\s*(\d+)/.exec(info)[1]),
    white: points.filter((point) => point > 250).length / points.length, isWide: Number(width) > Number(height),
  };
}

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
    assert.ok(drawn.some((words) => words.length === 2 && words.some(([text]) => /^most \d/.test(text)) && Math.abs(words[0][3] - words[1][3]) >= 8), JSON.stringify(drawn));
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
  const sheets = await sheetsOf(one.page, 'low', { width: '800px', height: '460px' });
  if (!sheets) return;
  assert.ok(sheets.length > 12, `${sheets.length} sheets`);
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
  assert.deepEqual(rows, ['device queues', 'queue 1 lane 0', 'queue 1 lane 1', PILED, 'tasks: threads that run each type; counters', ...rows.slice(5)]);
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
  const named = truth.state === 'task' ? `${truth.task_type.split(' [')[0]}, ${truth.task_ref.name}` : null;
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
  await three.page.evaluate(() => window.taskscope.models);
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
  for (const words of ['device queues2', 'efficiencynot known']) assert.ok(panel[0].includes(words), `${words}: ${panel[0]}`);
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

const four = await startBrowser({ width: 1400, height: 700 });
await step('what is missing or doubtful is drawn, explained and told in words', async () => {
  await four.page.goto(expected.doubtful);
  await ready(four.page);
  await settled(four.page);
  const legend = await four.page.textContent('.legend');
  for (const words of ['events lost', 'not known', 'had no CPU']) assert.ok(legend.includes(words), legend);
  const canvas = await four.page.locator('canvas.timeline').boundingBox();
  const [LOST, UNCERTAIN, OFF_CPU] = [2, 4, 32];
  for (const [track, at, flag, words] of [
    [0, 20000, OFF_CPU, 'off the CPU for 40.0 µs of it'],
    [0, 150000, LOST, '7 events were lost here'],
    [1, 98500, OFF_CPU, 'off the CPU for about 3.00 µs of it (estimated from sums)'],
    [1, 150000, UNCERTAIN, 'uncertain: the event at the end contradicts the state before it'],
    [2, 250000, UNCERTAIN, 'uncertain: the stream ends before the thread does'],
  ]) {
    const [x, y, flags, colours] = await four.page.evaluate(([track, at]) => {
      const t = window.taskscope.timeline;
      const columns = new Uint32Array(1);
      t.source.columns('state', track, at, t.nsPerPixel, columns, null);
      const [x, row] = [t.xOf(at), t.rowOf(track)];
      const top = (t.yOf(row) - row.height / 2) * t.ratio;
      const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      copy.drawImage(t.canvas, -x * t.ratio, -top - 2 * t.ratio);
      const { data } = copy.getImageData(0, 0, 8, (row.height - 4) * t.ratio);
      return [x, t.yOf(row), columns[0] >> 16 & 255, new Set(new Uint32Array(data.buffer)).size];
    }, [track, at]);
    assert.ok(flags & flag, `${track} at ${at}: ${flags}`);
    assert.ok(colours > 1, `${track} at ${at} is plain`);
    await four.page.mouse.move(canvas.x + x, canvas.y + y);
    await until(four.page, () => document.getElementById('tip').style.display === 'block');
    await eventually(async () => {
      const text = await four.page.textContent('#tip');
      assert.ok(text.includes(words), text);
    });
  }
  assert.deepEqual(four.problems, []);
});
await step('ranks are named, and a wait in an MPI call names the one that it waited for', async () => {
  await four.page.goto(expected.talking);
  await ready(four.page);
  await settled(four.page);
  const rows = await four.page.evaluate(() => window.taskscope.timeline.rows.filter((row) => row.kind === 'process').map((row) => row.label));
  assert.deepEqual(rows, ['process 17 (rank 0)', 'process 18 (rank 1)']);
  const canvas = await four.page.locator('canvas.timeline').boundingBox();
  const [x, y] = await four.page.evaluate(() => { const t = window.taskscope.timeline; return [t.xOf(30000), t.yOf(t.rowOf(0))]; });
  await four.page.mouse.move(canvas.x + x, canvas.y + y);
  await eventually(async () => {
    const text = await four.page.textContent('#tip');
    for (const words of ['MPI_Recv', 'waits 30.0 µs for rank 1: late sender']) assert.ok(text.includes(words), text);
  });
  assert.deepEqual(four.problems, []);
});
await four.close();
passed();
