// Starts Chromium as the tests need it: no network but what a page asks for itself, a fresh profile.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

/** Where Debian puts it; another one can be named. */
export const CHROMIUM = process.env.CHROMIUM || '/usr/bin/chromium';

/**
 * @param {{width: number, height: number, dark?: boolean, touch?: boolean}} options
 * @returns {Promise<{context: import('playwright-core').BrowserContext, page: import('playwright-core').Page, problems: string[], requests: string[], close: () => Promise<void>}>}
 */
export async function startBrowser(options) {
  const { context, profile } = await launch(options);
  const page = context.pages()[0] || (await context.newPage());
  const problems = [];
  const requests = [];
  page.on('console', (message) => {
    // Tests read pixels more often than the page does; Chromium advises them to say so beforehand.
    if (['error', 'warning'].includes(message.type()) && !message.text().includes('willReadFrequently')) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('request', (request) => requests.push(request.url()));
  return {
    context, page, problems, requests,
    close: async () => { await context.close(); rmSync(profile, { recursive: true, force: true }); },
  };
}

/** Starts Chromium; once more where it crashes before it has answered, as it does rarely. @param {{width: number, height: number, dark?: boolean, touch?: boolean}} options */
async function launch(options) {
  for (let left = 2; ; left--) {
    const profile = mkdtempSync(join(tmpdir(), 'taskscope-chromium-'));
    try {
      const context = await chromium.launchPersistentContext(profile, {
        executablePath: CHROMIUM,
        headless: true,
        args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
          '--disable-component-update', '--disable-sync'],
        viewport: { width: options.width, height: options.height },
        colorScheme: options.dark ? 'dark' : 'light',
        hasTouch: options.touch || false,
      });
      return { context, profile };
    } catch (error) {
      rmSync(profile, { recursive: true, force: true });
      if (!left) throw error;
      console.error(`Chromium did not start, once more: ${String(error).split('\n')[0]}`);
    }
  }
}

/**
 * Asks the page again and again until the answer is true. (The pages' security policy forbids the
 * way in which Playwright's own waiting works.)
 * @param {import('playwright-core').Page} page
 * @param {() => any} question
 */
export async function until(page, question) {
  const limit = Date.now() + 60000;
  for (;;) {
    const answer = await page.evaluate(question);
    if (answer) return answer;
    if (Date.now() > limit) throw new Error(`never true: ${question}`);
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

/** Waits until the page says that it is drawn. @param {import('playwright-core').Page} page */
export async function ready(page) {
  const state = await until(page, () => document.documentElement.dataset.ready);
  if (state !== 'yes') throw new Error(`the page failed: ${await page.textContent('#page')}`);
}

/** Waits until nothing is on its way to the timeline any more. @param {import('playwright-core').Page} page */
export async function settled(page) {
  await until(page, () => {
    const timeline = window.taskscope.timeline;
    return !timeline.source.busy && !timeline.scheduled && !timeline.source.again;
  });
}

/** Names of the steps that passed. @type {string[]} */
const done = [];

/** A step of a test: the program ends where it fails. @param {string} name @param {() => Promise<void>} body */
export async function step(name, body) {
  try {
    await body();
    done.push(name);
  } catch (error) {
    console.error(`failed: ${name}\n${error instanceof Error ? error.stack : error}`);
    process.exit(1);
  }
}

/** Tries until it does not fail any more: a loaded machine takes its time. @param {() => Promise<void>} check */
export async function eventually(check) {
  for (const limit = Date.now() + 30000; ;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > limit) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Says how many steps passed. */
export const passed = () => console.log(`${done.length} steps passed`);
