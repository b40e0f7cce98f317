// Two timelines of two runs, one above the other: which time of one belongs to which of the other, and the strip between them.

import { element } from './elements.js';
import { formatTime, fitText } from './format.js';
import { PAPER_RATIO, isPrinting } from './paper.js';

/** @typedef {{name: string, before: [number, number], after: [number, number]}} AlignedPart */

/** Height of the strip, pixels. */
const STRIP = 46;
/** A part that changed by less than this share has not changed. */
export const UNCHANGED = 0.02;

/**
 * Points in time of both runs that belong together, rising in both: begin and end of the runs and of their aligned parts.
 * @param {AlignedPart[]} parts
 * @param {[number, number]} lengths of the runs
 * @returns {[number, number][]}
 */
export function alignedPoints(parts, lengths) {
  /** @type {[number, number][]} */
  const points = [[0, 0]];
  const add = (/** @type {number} */ before, /** @type {number} */ after) => {
    const [last, other] = points[points.length - 1];
    if (before > last && after > other) points.push([before, after]);
  };
  for (const { before, after } of parts) {
    add(before[0], after[0]);
    add(before[1], after[1]);
  }
  add(lengths[0], lengths[1]);
  return points;
}

/**
 * The time of the other run that belongs to a time of one; between points, and beyond the last one, in proportion.
 * @param {[number, number][]} points
 * @param {number} at
 * @param {0 | 1} side whose time it is
 */
export function alignedTime(points, at, side) {
  const other = 1 - side;
  let low = 0;
  let high = points.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (points[middle][side] <= at) low = middle;
    else high = middle;
  }
  if (points.length < 2) return at;
  const [one, two] = [points[low], points[high]];
  return one[other] + ((at - one[side]) * (two[other] - one[other])) / Math.max(1, two[side] - one[side]);
}

/** How much longer a part became. @param {AlignedPart} part */
export function growthOf({ before, after }) {
  const [first, second] = [before[1] - before[0], after[1] - after[0]];
  return first > 0 ? second / first - 1 : second > 0 ? Infinity : 0;
}

/** The growth of a part in words. @param {AlignedPart} part @param {number} digits */
export function growthWords(part, digits) {
  const growth = growthOf(part);
  if (!Number.isFinite(growth)) return 'new';
  return growth >= 9.5 ? `× ${(growth + 1).toFixed(0)}` : `${growth < 0 ? '−' : '+'}${Math.abs(growth * 100).toFixed(digits)} %`;
}

/** A change of a length in words. @param {AlignedPart} part */
export function partWords(part) {
  const [first, second] = [part.before[1] - part.before[0], part.after[1] - part.after[0]];
  return `${fitText(part.name, 90)}: ${formatTime(first)} → ${formatTime(second)} (${growthWords(part, 1)})`;
}

/** The strip between two timelines: each aligned part as a band from its time above to its time below. */
export class AlignedStrip {
  /**
   * @param {AlignedPart[]} parts
   * @param {() => [import('./timeline.js').TimelineView, import('./timeline.js').TimelineView]} timelines above and below
   */
  constructor(parts, timelines) {
    this.parts = parts;
    this.timelines = timelines;
    /** The bands in sight, as drawn last. @type {{part: AlignedPart, top: [number, number], bottom: [number, number]}[]} */
    this.bands = [];
    this.canvas = /** @type {HTMLCanvasElement} */ (element('canvas', { class: 'aligned', role: 'img', 'aria-label': 'Aligned parts of both runs' }));
    this.canvas.addEventListener('pointermove', (event) => { this.canvas.title = this.wordsAt(event.offsetX, event.offsetY); });
    this.canvas.addEventListener('click', (event) => {
      const band = this.bandAt(event.offsetX, event.offsetY);
      if (band) this.frame(band.part);
    });
  }

  /** Brings a part into sight in both timelines. @param {AlignedPart} part */
  frame(part) {
    const [above] = this.timelines();
    const { before, after } = part;
    const around = 0.3 * Math.max(before[1] - before[0], after[1] - after[0]);
    above.show(before[0] - around, Math.max(before[1], before[0] + after[1] - after[0]) + around);
  }

  /** @param {number} x @param {number} y */
  bandAt(x, y) {
    const share = y / STRIP;
    const at = (/** @type {number} */ top, /** @type {number} */ bottom) => top + (bottom - top) * share;
    return this.bands.find(({ top, bottom }) => x >= at(top[0], bottom[0]) && x <= at(top[1], bottom[1]));
  }

  /** @param {number} x @param {number} y */
  wordsAt(x, y) {
    const band = this.bandAt(x, y);
    return band ? partWords(band.part) : '';
  }

  draw() {
    const [above, below] = this.timelines();
    const { width, theme, gutter } = above;
    const ratio = isPrinting() ? PAPER_RATIO : window.devicePixelRatio || 1;
    const { canvas } = this;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(STRIP * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${STRIP}px`;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.page;
    context.fillRect(0, 0, width, STRIP);
    context.fillStyle = theme.text;
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'right';
    context.fillText('before ↑', gutter - 8, 14);
    context.fillText('after ↓', gutter - 8, STRIP - 6);
    context.save();
    context.beginPath();
    context.rect(gutter, 0, width - gutter, STRIP);
    context.clip();
    this.bands = [];
    let drawn = -Infinity;
    for (const part of this.parts) {
      const top = /** @type {[number, number]} */ (part.before.map((at) => above.xOf(at)));
      const bottom = /** @type {[number, number]} */ (part.after.map((at) => below.xOf(at)));
      if (Math.max(top[1], bottom[1]) < gutter || Math.min(top[0], bottom[0]) > width) continue;
      // Bands that no one could tell apart are drawn once.
      if (Math.max(top[1], bottom[1]) < drawn + 0.7) continue;
      drawn = Math.max(top[1], bottom[1]);
      this.bands.push({ part, top, bottom });
      this.drawBand(context, part, top, bottom);
    }
    context.restore();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {AlignedPart} part
   * @param {[number, number]} top
   * @param {[number, number]} bottom
   */
  drawBand(context, part, top, bottom) {
    const [{ theme, gutter, width }] = this.timelines();
    const growth = growthOf(part);
    const colour = growth > UNCHANGED ? theme.marks.long : growth < -UNCHANGED ? theme.marks.shorter : theme.marks.same;
    context.beginPath();
    context.moveTo(top[0], 0);
    context.lineTo(top[1], 0);
    context.lineTo(bottom[1], STRIP);
    context.lineTo(bottom[0], STRIP);
    context.closePath();
    context.fillStyle = colour;
    context.globalAlpha = 0.16 + Math.min(0.34, Math.abs(growth) * 0.5);
    context.fill();
    context.globalAlpha = 0.9;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.stroke();
    context.globalAlpha = 1;
    const [left, right] = [Math.max(gutter, Math.max(top[0], bottom[0])), Math.min(width, Math.min(top[1], bottom[1]))];
    const words = growthWords(part, 0);
    if (right - left < context.measureText(words).width + 8) return;
    context.fillStyle = theme.text;
    context.textAlign = 'center';
    context.fillText(words, (left + right) / 2, STRIP / 2 + 4);
  }
}
