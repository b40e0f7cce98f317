// Prints pages, and reads what was printed.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);

/** Runs one of the programs that read PDF files. @param {string} program @param {string[]} words */
function read(program, ...words) {
  const { error, status, stdout } = spawnSync(program, words, { maxBuffer: 1 << 28 });
  if (error || status !== 0) throw new Error(`${program} ${words.join(' ')}: ${error || status}`);
  return stdout;
}

/**
 * Prints a page; null where nobody can read what was printed.
 * @param {import('playwright-core').Page} page
 * @param {string} name
 * @param {{[name: string]: any}} options
 * @returns {Promise<string | null>} the file
 */
async function print(page, name, options) {
  const path = join(folder, `${name}.pdf`);
  await page.pdf({ ...options, path });
  if (!spawnSync('pdfinfo', ['-v']).error) return path;
  console.error(`skipped: reading ${name}.pdf, as there is no pdfinfo (apt-get install poppler-utils)`);
  return null;
}

/** The text of each sheet. @param {import('playwright-core').Page} page @param {string} name @param {{[name: string]: any}} options */
export async function sheetsOf(page, name, options) {
  const path = await print(page, name, options);
  return path && read('pdftotext', '-layout', path, '-').toString().split('\f').slice(0, -1);
}

/**
 * The paper of a page: its text, how much of the first sheet is white, how many sheets, how wide and high they are.
 * @param {import('playwright-core').Page} page
 * @param {string} name
 */
export async function printed(page, name) {
  const path = await print(page, name, { format: 'A4', preferCSSPageSize: true });
  if (!path) return null;
  const info = read('pdfinfo', path).toString();
  const image = read('pdftoppm', '-gray', '-r', '30', '-f', '1', '-l', '1', path);
  const [header, width, height] = /^P5\s+(\d+)\s+(\d+)\s+255\s/.exec(image.subarray(0, 40).toString('latin1'));
  const points = image.subarray(header.length);
  assert.equal(points.length, Number(width) * Number(height));
  return {
    text: read('pdftotext', '-layout', path, '-').toString().replace(/\s+/g, ' '), pages: Number(/Pages:\s*(\d+)/.exec(info)[1]),
    white: points.filter((point) => point > 250).length / points.length, isWide: Number(width) > Number(height),
  };
}
