// Measures the viewer as its user meets it: opening, answers of the server, first paint, frames.
// Usage: node speed.js TASKSCOPE TRACE [GOALS], where GOALS is `large` for the trace of a hundred million events.
// Opens the trace twice: without a cache, and with the one that the first time left.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { createInterface } from 'node:readline';

const [taskscope, trace, goals] = process.argv.slice(2);
const large = goals === 'large';
const cache = `${trace.replace(/\/$/, '')}.cache`;
const quantile = (values, part) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))];
const row = (name, words, goal = '') => console.log(`  ${name.padEnd(44)} ${words.padEnd(44)} ${goal}`);
const times = (name, values, goal = '') => row(name, `median ${quantile(values, 0.5).toFixed(1)} ms   p99 ${quantile(values, 0.99).toFixed(1)} ms   (${values.length})`, goal);

/** Processor time of a process so far, seconds. @param {number} pid */
function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Starts the viewer and waits for its address. */
async function open() {
  const begun = performance.now();
  const child = spawn(taskscope, ['view', trace], { stdio: ['ignore', 'inherit', 'pipe'] });
  const address = await new Promise((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => { if (line.includes('http://')) resolve(line.trim()); });
    child.once('exit', (code) => reject(new Error(`taskscope view ended with ${code}`)));
  });
  const wall = (performance.now() - begun) / 1000;
  const close = () => new Promise((resolve) => { child.removeAllListeners('exit'); child.once('exit', resolve); child.kill('SIGINT'); });
  return { address, wall, cpu: cpuSeconds(child.pid), close };
}

rmSync(cache, { force: true });
const first = await open();
row('index: first opening', `${first.wall.toFixed(2)} s wall, ${first.cpu.toFixed(2)} s of processors`, large ? '≤ 6 s on two cores' : '');
const limit = Date.now() + 120000;
while (!existsSync(cache) && Date.now() < limit) await new Promise((resolve) => setTimeout(resolve, 200));
await first.close();
// The kernel still writes the cache to the disk, of which a user who opens the trace again meets nothing.
spawnSync('sync');
const again = [];
for (let i = 0; i < 5; i++) {
  const next = await open();
  again.push(next.wall * 1000);
  await next.close();
}
times('opening with the cache', again, large ? '≤ 300 ms' : '');

// The server alone: 64 tracks × 1600 buckets, at random places and zooms.
const viewer = await open();
const { origin, searchParams } = new URL(viewer.address);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
/** @param {string} path @returns {Promise<Buffer>} */
const ask = (path) => new Promise((resolve, reject) => {
  get(origin + path, { agent, headers: { 'x-taskscope-token': searchParams.get('token') || '' } }, (answer) => {
    const parts = [];
    answer.on('data', (part) => parts.push(part));
    answer.on('end', () => (answer.statusCode === 200 ? resolve(Buffer.concat(parts)) : reject(new Error(`${path}: ${answer.statusCode}`))));
  }).on('error', reject);
});
const overview = JSON.parse((await ask('/api/overview')).toString());
const tracks = overview.tracks.slice(0, 64).map((track) => track.track);
const answered = [];
for (let i = 0; i < 1000; i++) {
  const span = overview.length_ns / 2 ** (i % 16);
  const level = Math.max(0, Math.floor(Math.log2(span / 1600)));
  const left = Math.floor((((i * 7919) % 1000) / 1000) * Math.max(0, overview.length_ns - span) / 2 ** level);
  const begun = performance.now();
  await ask(`/api/rows?view=state&level=${level}&first=${left}&count=1600&tracks=${tracks[0]}-${tracks[tracks.length - 1]}`);
  answered.push(performance.now() - begun);
}
times(`${tracks.length} × 1600 buckets from the server`, answered, '≤ 10 ms (p99)');
agent.destroy();

// Only now: with it in memory, this client itself would pause while the server is measured.
const { ready, settled, startBrowser } = await import('./browser.js');
const { page, close } = await startBrowser({ width: 1750, height: 1200 });
const begun = performance.now();
await page.goto(viewer.address);
await ready(page);
await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
const painted = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN);
row('first paint', `${painted.toFixed(0)} ms, page ready after ${(performance.now() - begun).toFixed(0)} ms`, '≤ 1 s');
await settled(page);
row('everything drawn', `${(performance.now() - begun).toFixed(0)} ms`);

const frames = async (name, action) => {
  await page.evaluate(() => { window.taskscope.timeline.frames = []; });
  const gaps = await page.evaluate(action);
  times(`${name}: drawing`, await page.evaluate(() => window.taskscope.timeline.frames), '≤ 50 ms');
  times(`${name}: frame to frame`, gaps);
  await settled(page);
};
/** In the page: calls `turn` once a frame and notes the time between frames. */
const loop = (turn, count) => `new Promise((resolve) => { const t = window.taskscope.timeline; const gaps = []; let last = performance.now(); let i = 0;
  const next = () => { const now = performance.now(); gaps.push(now - last); last = now; if (i++ === ${count}) { resolve(gaps.slice(1)); return; } (${turn})(t, i); requestAnimationFrame(next); };
  requestAnimationFrame(next); })`;
await frames('zoom', loop('(t, i) => t.zoom(i % 60 < 30 ? 0.8 : 1.25, 700)', 120));
await page.evaluate(() => window.taskscope.timeline.show(0, window.taskscope.timeline.length / 50));
await settled(page);
await frames('pan', loop('(t) => t.pan(40)', 120));
await frames('scroll', loop('(t, i) => t.scroll(i % 80 < 40 ? 60 : -60)', 120));
await close();
await viewer.close();
