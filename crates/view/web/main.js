// Where the page starts: with its own data it is a report, without it a viewer.

import { EmbeddedSource, readJson } from './source.js';
import { showProfile, showReport } from './report.js';
import { showViewer } from './viewer.js';
import { openComparison } from './compare.js';
import { showHistory } from './history.js';

async function start() {
  const page = /** @type {HTMLElement} */ (document.getElementById('page'));
  try {
    const embedded = document.getElementById('overview');
    const report = document.getElementById('report');
    const [comparison, history] = ['comparison', 'history'].map((id) => document.getElementById(id));
    if (history) {
      Object.assign(window, { taskscope: showHistory(page, history.textContent || '{}') });
    } else if (comparison) {
      Object.assign(window, { taskscope: await openComparison(page, comparison.textContent || '{}') });
    } else if (embedded && report) {
      const { source, overview } = await EmbeddedSource.read(embedded);
      const json = report.textContent || '{}';
      const shown = showReport(page, readJson(json), overview, source, json);
      // For the console and for tests.
      Object.assign(window, { taskscope: shown });
    } else if (report) {
      showProfile(page, readJson(report.textContent || '{}'), report.textContent || '{}');
    } else {
      Object.assign(window, { taskscope: await showViewer(page) });
    }
    document.documentElement.dataset.ready = 'yes';
  } catch (error) {
    page.textContent = `This page could not be drawn: ${error instanceof Error ? error.message : error}`;
    document.documentElement.dataset.ready = 'failed';
  }
}

start();
