// Checks pages with axe-core in each of their states, light and dark, wide and narrow.
// Usage: node axe.js ADDRESS… (of viewers and of files); prints the violations, and fails if there are some.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { ready, startBrowser } from '../browser/browser.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** States of the viewer: what brings a page there from the one before. @type {[string, string][]} */
const VIEWER = [
  ['the run', ''],
  ['a section', 'const v = window.taskscope; const t = v.timeline; const r = t.rows.find((row) => row.kind === "track"); await v.open(r, Math.floor(t.length / 2));'],
  ['its source', 'await window.taskscope.showSource();'],
  ['machine code', 'const code = document.getElementById("machine-code"); code?.click(); for (let i = 0; code && i < 100 && !document.getElementById("assembly-title"); i++) await new Promise((done) => setTimeout(done, 100));'],
  ['a task type', 'const t = window.taskscope.timeline; if (t.rows.some((row) => row.slot === 0)) t.openType(0, t.length / 2);'],
  ['a framed finding', 'window.taskscope.showRun(); document.querySelector("#panel .findings button")?.click();'],
  ['notes', 'window.taskscope.showNotes();'],
  ['a selected range', 'window.taskscope.timeline.select(window.taskscope.timeline.length / 4, window.taskscope.timeline.length / 2); await new Promise((done) => setTimeout(done, 1500));'],
  ['the report of the range', 'document.getElementById("report-part")?.click(); for (let i = 0; i < 100 && !document.getElementById("part-title"); i++) await new Promise((done) => setTimeout(done, 100)); if (!document.getElementById("part-title")) throw new Error("the report of the range did not come");'],
  ['a search without a match', 'window.taskscope.search.value = "nothing has this name"; await window.taskscope.find("next");'],
  ['keys', 'window.taskscope.showKeys();'],
  ['the address', 'await window.taskscope.copyLink();'],
];

/** Shows one more row than a table shows at first, sorts it, filters it. */
const TABLES = [
  ['all rows', 'document.querySelectorAll("button.more:not([hidden])").forEach((more) => more.click());'],
  ['sorted tables', 'document.querySelectorAll("thead button.sort").forEach((title) => title.click());'],
  ['filtered tables', 'document.querySelectorAll(".tools input").forEach((filter) => { filter.value = "nothing has this name"; filter.dispatchEvent(new Event("input")); });'],
];
/** States of pages in one file, by their titles. @type {{[title: string]: [string, string][]}} */
const FILES = {
  'taskscope report': [
    ['further findings', 'document.querySelectorAll("details").forEach((part) => { part.open = true; });'],
    ['a framed finding', 'document.querySelector(".finding button.show")?.click();'],
    ['an enlarged path', 'document.querySelectorAll(".icicle .frame")[1]?.click();'],
    ...TABLES,
  ],
  'taskscope comparison': [
    ['an aligned part', 'document.querySelector("#timelines button.link")?.click();'],
    ['the same parts', 'const mode = document.getElementById("mode"); if (mode) { mode.value = "parts"; mode.dispatchEvent(new Event("change")); }'],
    ['a section', 'const { two } = window.taskscope; const row = two?.timelines[1].rows.find((known) => known.kind === "track"); if (row) await two.tell(1, row, Math.floor(two.lengths[1] / 2));'],
    ['what is unchanged', 'document.querySelectorAll("details").forEach((part) => { part.open = true; });'],
    ['an enlarged path', 'document.querySelectorAll(".icicle .frame")[1]?.click();'],
    ...TABLES,
  ],
  'taskscope history': [['a run of a chart', 'document.querySelectorAll("#numbers canvas").forEach((chart) => chart.dispatchEvent(new KeyboardEvent("keydown", { key: "End" })));'], ...TABLES],
};

const SIZES = [{ width: 1440, height: 900 }, { width: 1440, height: 900, dark: true }, { width: 390, height: 844 }];
let found = 0;
for (const address of process.argv.slice(2)) {
  for (const size of SIZES) {
    const { page, context, close } = await startBrowser(size);
    // The pages' security policy lets no other program in; a session of the debugger is not bound by it.
    const session = await context.newCDPSession(page);
    const evaluate = async (expression) => {
      const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true, allowUnsafeEvalBlockedByCSP: true });
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
      return result.value;
    };
    await page.goto(address);
    await ready(page);
    await evaluate(axe);
    const isViewer = await evaluate('document.body.classList.contains("viewing")');
    const states = isViewer ? VIEWER : FILES[await evaluate('document.querySelector("h1").textContent')];
    for (const [state, code] of isViewer ? states : [['the page', ''], ...states]) {
      await evaluate(`(async () => { ${code}; await new Promise((done) => setTimeout(done, 400)); })()`);
      const violations = await evaluate('axe.run(document, { resultTypes: ["violations"] }).then((result) => result.violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, nodes: nodes.map((node) => node.html.slice(0, 160) + " — " + (node.failureSummary || "").split("\\n").slice(1, 3).join(" ").trim()) })))');
      found += violations.length;
      const where = `${new URL(address).pathname}, ${state}, ${size.width} × ${size.height}${size.dark ? ', dark' : ''}`;
      console.log(`${where}: ${violations.length ? '' : 'no violations'}`);
      for (const { id, impact, help, nodes } of violations) console.log(`  ${id} (${impact}): ${help}\n${nodes.slice(0, 4).map((node) => `    ${node}`).join('\n')}`);
    }
    await close();
  }
}
console.log(found ? `${found} violations` : 'no violations');
process.exit(found ? 1 : 0);
