// The visible range as a file: PNG from the canvas, SVG from the buckets.

import { LOST, NOTHING, OFF_CPU, UNCERTAIN } from './pixels.js';
import { formatPoint } from './format.js';

/**
 * Offers data as a file.
 * @param {string} name
 * @param {Blob} blob
 */
export function saveFile(name, blob) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/**
 * @param {import('./timeline.js').TimelineView} timeline
 * @returns {Promise<Blob | null>}
 */
export function timelinePng(timeline) {
  timeline.draw();
  return new Promise((resolve) => timeline.canvas.toBlob(resolve, 'image/png'));
}

/** @param {string} text */
function xmlText(text) {
  // Control characters are not allowed in XML at all.
  return text.replace(/[\u0000-\u001f\ufffe\uffff]/g, '\ufffd').replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}

/**
 * The rows in sight as rectangles, one for each run of pixels of one colour.
 * @param {import('./timeline.js').TimelineView} timeline
 * @returns {string}
 */
export function timelineSvg(timeline) {
  const rows = timeline.visible.filter((row) => row.kind === 'track');
  const left = 150;
  const width = Math.round(timeline.plotWidth);
  const tall = 14;
  const height = rows.length * (tall + 2) + 40;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${left + width + 10}" height="${height}" font-family="sans-serif" font-size="11">`,
    `<rect width="100%" height="100%" fill="${timeline.theme.page}"/>`,
    '<defs><pattern id="lost" width="4" height="4" patternUnits="userSpaceOnUse"><path d="M0 4L4 0" stroke="black"/></pattern>' +
    '<pattern id="unknown" width="4" height="4" patternUnits="userSpaceOnUse"><path d="M0 0L4 4" stroke="white"/></pattern>' +
    `<pattern id="off" width="4" height="4" patternUnits="userSpaceOnUse"><rect width="4" height="4" fill="${timeline.theme.page}"/><rect width="2" height="4" fill="${timeline.theme.marks.off}"/></pattern></defs>`,
  ];
  const columns = new Uint32Array(width);
  const occurs = new Set();
  rows.forEach((row, line) => {
    columns.fill(NOTHING);
    timeline.source.columns('state', row.track, timeline.from, timeline.nsPerPixel, columns, null);
    const y = line * (tall + 2);
    parts.push(`<text x="${left - 6}" y="${y + 11}" text-anchor="end" fill="${timeline.theme.text}">${xmlText(row.label)}</text>`);
    for (let x = 0; x < width;) {
      const kind = columns[x] & 0xff;
      const flags = (columns[x] >> 16) & (LOST | UNCERTAIN | OFF_CPU);
      let end = x + 1;
      while (end < width && (columns[end] & 0xff) === kind && ((columns[end] >> 16) & (LOST | UNCERTAIN | OFF_CPU)) === flags) end++;
      if (kind !== 255) {
        occurs.add(kind);
        parts.push(`<rect x="${left + x}" y="${y}" width="${end - x}" height="${tall}" fill="${timeline.theme.state[kind]}"/>`);
        if (flags & OFF_CPU) parts.push(`<rect x="${left + x}" y="${y + tall - 4}" width="${end - x}" height="4" fill="url(#off)"/>`);
        if (flags & (LOST | UNCERTAIN)) parts.push(`<rect x="${left + x}" y="${y}" width="${end - x}" height="${tall}" fill="url(#${flags & LOST ? 'lost' : 'unknown'})"/>`);
      }
      x = end;
    }
  });
  const base = rows.length * (tall + 2) + 14;
  parts.push(`<text x="${left}" y="${base}" fill="${timeline.theme.text}">${formatPoint(timeline.from, timeline.nsPerPixel)}</text>`);
  parts.push(`<text x="${left + width}" y="${base}" text-anchor="end" fill="${timeline.theme.text}">${formatPoint(timeline.from + timeline.span, timeline.nsPerPixel)}</text>`);
  let x = left;
  for (const kind of occurs) {
    const label = timeline.overview.states[kind].label;
    parts.push(`<rect x="${x}" y="${base + 8}" width="10" height="10" fill="${timeline.theme.state[kind]}"/><text x="${x + 14}" y="${base + 17}" fill="${timeline.theme.text}">${xmlText(label)}</text>`);
    x += 28 + label.length * 6;
  }
  parts.push('</svg>');
  return parts.join('\n');
}
