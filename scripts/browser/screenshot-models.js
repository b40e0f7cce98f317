// Takes the picture of the viewer with views of models, from a trace of nOS-V. Usage: node screenshot-models.js TASKSCOPE TRACE FILE.

import { spawn } from 'node:child_process';
import { basename, dirname, resolve as absolute } from 'node:path';
import { createInterface } from 'node:readline';
import { ready, settled, startBrowser, until } from './browser.js';

const VIEWS = ['CPUs: nOS-V subsystem of the RUNNING thread', 'CPUs: nOS-V task type of the RUNNING thread'];

const [taskscope, trace, file] = process.argv.slice(2);
// The page shows the trace as it is called here.
const viewer = spawn(absolute(taskscope), ['view', basename(trace)], { cwd: dirname(trace), stdio: ['ignore', 'ignore', 'pipe'] });
const address = await new Promise((resolve, reject) => {
  createInterface({ input: viewer.stderr }).on('line', (line) => { if (line.includes('http://')) resolve(line.trim()); });
  viewer.once('exit', () => reject(new Error(`${taskscope} shows no ${trace}`)));
});
const browser = await startBrowser({ width: 1400, height: 900 });
const { page } = browser;
await page.goto(address);
await ready(page);
await page.evaluate(() => window.taskscope.models);
for (const label of VIEWS) await page.selectOption('#second', { label });
await page.evaluate(() => window.taskscope.timeline.show(0.4e9, 0.6e9));
await settled(page);
// The names of values, and so their colours, are known when a view was played.
await page.evaluate(() => window.taskscope.loadModels());
await until(page, () => document.querySelectorAll('ul.legend').length > 2);
await page.waitForTimeout(1500);
await settled(page);
await page.screenshot({ path: file });
await browser.close();
viewer.kill('SIGINT');
