// Prints the numbers in the tables of a report as JSON: table, row, column's title, exact value. A row of a
// tree is named by its path. Started by crates/cli/tests/numbers.rs with the file of the report.

import { pathToFileURL } from 'node:url';
import { ready, startBrowser } from './browser.js';

const one = await startBrowser({ width: 1200, height: 900 });
await one.page.goto(pathToFileURL(process.argv[2]).href);
await ready(one.page);
const numbers = await one.page.evaluate(() => {
  // All rows of each table.
  for (const button of document.querySelectorAll('div.table button.more:not([hidden])')) /** @type {HTMLElement} */ (button).click();
  return [...document.querySelectorAll('div.table > table')].flatMap((table) => {
    const titles = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    /** @type {string[]} */
    const path = [];
    return [...table.tBodies[0].rows].flatMap((row) => {
      const words = [...row.cells].filter((cell) => !cell.classList.contains('number') && cell.querySelector('.bar, canvas') === null).map((cell) => cell.textContent);
      const deep = row.cells[0].querySelector('[data-depth]');
      if (deep) {
        path.length = Number(deep.dataset.depth);
        path.push(words[0].replace('▸ ', ''));
      }
      // The first column's title names the kind of rows: a path, a line, a loop, or a function wherever it was called.
      const kind = ['path', 'line', 'loop'].includes(titles[0]) ? [titles[0]] : [];
      const isFlat = ['function', 'line', 'loop'].includes(titles[0]);
      const name = deep ? [...kind, ...path] : isFlat ? [...kind, words[0].replace(/ {2}\[.*\]$/, '')] : words.filter((word) => word !== '');
      return [...row.cells].flatMap((cell, at) => (cell.dataset.value === undefined ? [] : [{ table: table.caption.textContent, row: name, title: titles[at], value: Number(cell.dataset.value) }]));
    });
  });
});
await one.close();
console.log(JSON.stringify(numbers));
