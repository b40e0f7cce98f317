// Takes the pictures of docs/img from recordings. Usage: node pictures.js TASKSCOPE TRACES FOLDER, where TRACES has
// cholesky.trace, imbalance.trace and, for the views of models, heat.trace of nOS-V. `scripts/pictures` starts it.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve as absolute } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { ready, settled, startBrowser, until } from './browser.js';

const [taskscope, traces, folder] = process.argv.slice(2).map((path) => absolute(path));

/** @param {string} name @param {string} trace @param {{width: number, height: number, dark?: boolean}} size */
async function report(name, trace, size) {
  const html = join(traces, `${trace}.html`);
  spawnSync(taskscope, ['report', '--html', html, trace], { cwd: traces, stdio: ['ignore', 'ignore', 'inherit'] });
  const browser = await startBrowser(size);
  await browser.page.goto(pathToFileURL(html).href);
  await ready(browser.page);
  await browser.page.waitForTimeout(300);
  await browser.page.screenshot({ path: join(folder, `${name}.png`) });
  await browser.close();
}

/**
 * @param {string} name @param {string} trace @param {{width: number, height: number, dark?: boolean}} size
 * @param {(page: import('playwright-core').Page) => Promise<void>} [prepare]
 */
async function viewer(name, trace, size, prepare) {
  // The page shows the trace by the name that it has here.
  const server = spawn(taskscope, ['view', '--no-cache', trace], { cwd: traces, stdio: ['ignore', 'ignore', 'pipe'] });
  const address = await new Promise((resolve, reject) => {
    createInterface({ input: server.stderr }).on('line', (line) => { if (line.includes('http://')) resolve(line.trim()); });
    server.once('exit', () => reject(new Error(`${taskscope} does not show ${trace}`)));
  });
  const browser = await startBrowser(size);
  const { page } = browser;
  await page.goto(address);
  await ready(page);
  await settled(page);
  if (prepare) await prepare(page);
  await settled(page);
  await until(page, () => window.taskscope.timeline.frames.length > 0);
  await page.waitForTimeout(1500);
  await settled(page);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await browser.close();
  server.kill('SIGINT');
}

/** Opens the first task after a third of the run whose critical predecessor ran on another thread. */
async function taskWithDependences(page) {
  await page.evaluate(async () => {
    const { source, timeline, overview } = window.taskscope;
    const track = overview.tracks[0].track;
    for (let at = Math.floor(overview.length_ns / 3), looks = 0; looks < 2000; looks++) {
      const section = await source.json('section', { track, at });
      at = section.end;
      if (!section.task_ref) continue;
      const task = await window.taskscope.askTask(section.task_ref);
      const before = task.critical_predecessor;
      if (!before || task.began === null || !task.successors_count || before.runner === task.runner) continue;
      const margin = 4 * (task.ended - before.began);
      timeline.show(before.began - margin, task.ended + margin);
      timeline.marked = section;
      await window.taskscope.showTask(section.task_ref);
      return;
    }
    throw new Error('no task waited for one of another thread');
  });
}

async function viewsOfModels(page) {
  await page.evaluate(() => window.taskscope.models);
  for (const label of ['CPUs: nOS-V subsystem of the RUNNING thread', 'CPUs: nOS-V task type of the RUNNING thread']) {
    await page.selectOption('#second', { label });
  }
  await page.evaluate(() => window.taskscope.timeline.show(0.4e9, 0.6e9));
  await settled(page);
  // The names of values, and so their colours, are known when a view was played.
  await page.evaluate(() => window.taskscope.loadModels());
  await until(page, () => document.querySelectorAll('ul.legend').length > 2);
}

const wide = { width: 1560, height: 800 };
await report('report-light', 'cholesky.trace', { width: 1200, height: 1500 });
await report('report-dark', 'cholesky.trace', { width: 1200, height: 1500, dark: true });
await report('report-narrow', 'cholesky.trace', { width: 420, height: 1400 });
await viewer('viewer-tutorial', 'imbalance.trace', { width: 1560, height: 640 });
await viewer('viewer-light', 'cholesky.trace', wide);
await viewer('viewer-dark', 'cholesky.trace', { ...wide, dark: true }, taskWithDependences);
await viewer('viewer-narrow', 'cholesky.trace', { width: 480, height: 900 });
if (existsSync(join(traces, 'heat.trace'))) await viewer('viewer-models', 'heat.trace', { width: 1560, height: 900 }, viewsOfModels);
