// Drives the viewer of runs of which something is missing or doubtful, and of ranks.
// Started by crates/view/tests/browser.rs with a folder that holds pages, report.json and expected.json: addresses, and the library's answers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, passed, ready, settled, startBrowser, step, until } from './browser.js';

const expected = JSON.parse(readFileSync(join(process.argv[2], 'expected.json'), 'utf8'));

const four = await startBrowser({ width: 1400, height: 700 });
await step('what is missing or doubtful is drawn, explained and told in words', async () => {
  await four.page.goto(expected.doubtful);
  await ready(four.page);
  await settled(four.page);
  // The legend follows what is drawn, a moment later.
  await eventually(async () => {
    const legend = await four.page.textContent('.legend');
    for (const words of ['events lost', 'not known', 'had no CPU']) assert.ok(legend.includes(words), legend);
  });
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
