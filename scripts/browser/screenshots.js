// Takes the pictures of docs/img from synthetic runs. Usage: node screenshots.js SHOW FOLDER, where SHOW
// is the example `show` of the testkit (cargo build --release -p taskscope-testkit --example show).

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { ready, settled, startBrowser, until } from './browser.js';

const [show, folder] = process.argv.slice(2);

/** Runs `show` and waits for its first line, or its end. @param {string[]} words */
function run(words) {
  const child = spawn(show, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  const line = new Promise((resolve) => {
    createInterface({ input: child.stdout }).once('line', resolve);
    child.once('exit', () => resolve(''));
  });
  return { line, end: () => child.stdin.end() };
}

const temporary = mkdtempSync(join(tmpdir(), 'taskscope-pictures-'));
const html = join(temporary, 'report.html');
await run(['2000000', '16', 'html', html]).line;
for (const [name, width, height, dark] of [['report-light', 1200, 1500, false], ['report-dark', 1200, 1500, true], ['report-narrow', 420, 1400, false]]) {
  const browser = await startBrowser({ width, height, dark });
  await browser.page.goto(pathToFileURL(html).href);
  await ready(browser.page);
  await browser.page.waitForTimeout(300);
  await browser.page.screenshot({ path: join(folder, `${name}.png`) });
  await browser.close();
}
rmSync(temporary, { recursive: true });

const viewers = [
  ['viewer-light', ['2000000', '64'], false, 1400, 800], ['viewer-dark', ['2000000', '64'], true, 1400, 800],
  ['viewer-narrow', ['2000000', '64'], false, 480, 900], ['viewer-100-million-events', ['100000000', '64'], false, 1400, 800],
  ['viewer-4096-threads', ['20000000', '4096'], false, 1400, 800],
];
for (const [name, words, dark, width, height] of viewers) {
  const server = run([...words, 'serve']);
  const browser = await startBrowser({ width, height, dark });
  const { page } = browser;
  await page.goto(await server.line);
  await ready(page);
  await settled(page);
  if (name === 'viewer-dark' || name === 'viewer-light') {
    // A task with its dependences, as after a click.
    await page.evaluate(async () => {
      const viewer = window.taskscope;
      for (let number = 40000; number < 40400; number++) {
        const task = await viewer.source.json('task', { task: number });
        if (!task.critical_predecessor || task.began === null || task.runner > 25 || task.successors_count === 0) continue;
        if (task.began - task.critical_predecessor.ended > 60000 || task.critical_predecessor.runner === task.runner) continue;
        viewer.timeline.show(task.critical_predecessor.ended - 20000, task.ended + 60000);
        viewer.timeline.marked = await viewer.source.json('section', { track: task.runner, at: task.began });
        await viewer.showTask(number);
        return;
      }
    });
  }
  if (name === 'viewer-4096-threads') await page.evaluate(() => window.taskscope.timeline.toggleRow(window.taskscope.timeline.rows.find((row) => row.kind === 'process')));
  await settled(page);
  await until(page, () => window.taskscope.timeline.frames.length > 0);
  await page.waitForTimeout(1500);
  await settled(page);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await browser.close();
  server.end();
}
