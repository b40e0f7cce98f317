// Measures the viewer: first paint, frames while zooming, panning and scrolling, answers of the server.
// Usage: node speed.js SHOW EVENTS THREADS

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { ready, settled, startBrowser } from './browser.js';

const [show, events, threads] = process.argv.slice(2);
const child = spawn(show, [events, threads, 'serve'], { stdio: ['pipe', 'pipe', 'inherit'] });
const address = await new Promise((resolve) => createInterface({ input: child.stdout }).once('line', resolve));
const { page, close } = await startBrowser({ width: 1750, height: 1200 });
const quantile = (values, part) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))];
const words = (name, values) => console.log(`${name.padEnd(34)} median ${quantile(values, 0.5).toFixed(1)} ms   p99 ${quantile(values, 0.99).toFixed(1)} ms   (${values.length})`);

const begun = performance.now();
await page.goto(address);
await ready(page);
console.log(`page ready after ${(performance.now() - begun).toFixed(0)} ms`);
await settled(page);
console.log(`everything drawn after ${(performance.now() - begun).toFixed(0)} ms`);

const frames = async (name, action) => {
  await page.evaluate(() => { window.taskscope.timeline.frames = []; });
  const gaps = await page.evaluate(action);
  words(`${name}: drawing`, await page.evaluate(() => window.taskscope.timeline.frames));
  words(`${name}: frame to frame`, gaps);
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

// 64 tracks × 1600 buckets, at random places and zooms, through HTTP.
const answers = await page.evaluate(async () => {
  const { source, overview } = window.taskscope;
  const tracks = overview.tracks.slice(0, 64).map((track) => track.track);
  const times = [];
  for (let i = 0; i < 300; i++) {
    const span = overview.length_ns / 2 ** (i % 14);
    const level = Math.max(0, Math.floor(Math.log2(span / 1600)));
    const first = Math.floor((((i * 7919) % 1000) / 1000) * Math.max(0, overview.length_ns - span) / 2 ** level);
    const begun = performance.now();
    await (await source.request('rows', { view: 'state', level, first, count: 1600, tracks: `${tracks[0]}-${tracks[tracks.length - 1]}` })).arrayBuffer();
    times.push(performance.now() - begun);
  }
  return times;
});
words('64 × 1600 buckets over HTTP', answers);
await close();
child.stdin.end();
