// The visible range as a file: PNG from the canvas, SVG by drawing again.

import { namedColours } from './charts.js';
import { BLANK } from './palette.js';

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
  // A canvas draws what parts words as blanks; other control characters are not allowed in XML at all.
  return text.replace(/[\t\n\r]/g, ' ').replace(/[\u0000-\u001f\ufffe\uffff]/g, '\ufffd').replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}

/** A packed colour and what is seen through it. @param {number} packed */
function svgFill(packed) {
  const alpha = packed >>> 24;
  return `fill="#${((packed & 255) << 16 | packed & 0xff00 | packed >> 16 & 255).toString(16).padStart(6, '0')}"${alpha === 255 ? '' : ` fill-opacity="${(alpha / 255).toFixed(2)}"`}`;
}

/** A number as short as it may be. @param {number} value */
const svgNumber = (value) => String(Math.round(value * 100) / 100);

/** Takes the calls with which the timeline draws on its canvas, and writes them as SVG. */
class SvgContext {
  constructor() {
    /** @type {string[]} */
    this.parts = [];
    this.saved = [];
    this.path = '';
    this.clips = 0;
    this.fillStyle = '#000000';
    this.strokeStyle = '#000000';
    this.globalAlpha = 1;
    this.lineWidth = 1;
    this.lineJoin = 'miter';
    this.font = '11px sans-serif';
    this.textAlign = 'left';
    this.textBaseline = 'alphabetic';
    this.dash = '';
    this.clipped = '';
  }

  setTransform() {}
  save() { this.saved.push([this.globalAlpha, this.clipped]); }
  restore() { [this.globalAlpha, this.clipped] = this.saved.pop(); }
  beginPath() { this.path = ''; }
  rect(x, y, width, height) { this.path += `M${svgNumber(x)} ${svgNumber(y)}h${svgNumber(width)}v${svgNumber(height)}h${svgNumber(-width)}z`; }
  moveTo(x, y) { this.path += `M${svgNumber(x)} ${svgNumber(y)}`; }
  lineTo(x, y) { this.path += `L${svgNumber(x)} ${svgNumber(y)}`; }
  bezierCurveTo(...points) { this.path += `C${points.map(svgNumber).join(' ')}`; }
  setLineDash(lengths) { this.dash = lengths.length ? ` stroke-dasharray="${lengths.join(' ')}"` : ''; }
  clip() {
    this.clips++;
    this.parts.push(`<clipPath id="clip${this.clips}"><path d="${this.path}"/></clipPath>`);
    this.clipped = ` clip-path="url(#clip${this.clips})"`;
  }

  get more() { return `${this.globalAlpha === 1 ? '' : ` opacity="${this.globalAlpha}"`}${this.clipped}`; }
  get strokes() { return `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${this.dash}${this.more}`; }
  fill() { this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}"${this.more}/>`); }
  stroke() { this.parts.push(`<path d="${this.path}" ${this.strokes}/>`); }
  strokeRect(x, y, width, height) { this.parts.push(`<rect x="${svgNumber(x)}" y="${svgNumber(y)}" width="${svgNumber(width)}" height="${svgNumber(height)}" ${this.strokes}/>`); }
  fillRect(x, y, width, height) {
    if (width > 0 && height > 0) this.parts.push(`<rect x="${svgNumber(x)}" y="${svgNumber(y)}" width="${svgNumber(width)}" height="${svgNumber(height)}" fill="${this.fillStyle}"${this.more}/>`);
  }

  measureText(text) {
    const paper = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
    paper.font = this.font;
    return paper.measureText(text);
  }

  fillText(text, x, y) { this.text(text, x, y, `fill="${this.fillStyle}"${this.more}`); }
  strokeText(text, x, y) { this.text(text, x, y, `${this.strokes} stroke-linejoin="${this.lineJoin}"`); }

  text(text, x, y, look) {
    const anchor = this.textAlign === 'center' ? ' text-anchor="middle"' : '';
    const [, bold, size] = /^(bold )?(\d+)px/.exec(this.font) || ['', '', '11'];
    const lower = this.textBaseline === 'middle' ? 0.35 * Number(size) : 0;
    this.parts.push(`<text x="${svgNumber(x)}" y="${svgNumber(y + lower)}" font-size="${size}"${bold ? ' font-weight="bold"' : ''} ${look}${anchor}>${xmlText(text)}</text>`);
  }

  /** A part of a picture as rectangles: equal points below and beside each other become one. */
  drawImage(source, ...at) {
    const [sx, sy, sw, sh, x, y, width, height] = at.length === 8 ? at : [0, 0, source.width, source.height, ...at];
    // A copy, since reading makes a browser keep a canvas where drawing on it is slow.
    const copy = /** @type {CanvasRenderingContext2D} */ (Object.assign(document.createElement('canvas'), { width: sw, height: sh }).getContext('2d', { willReadFrequently: true }));
    copy.drawImage(source, sx, sy, sw, sh, 0, 0, sw, sh);
    const points = new Uint32Array(copy.getImageData(0, 0, sw, sh).data.buffer);
    const same = (left, right) => {
      for (let line = 0; line < sh; line++) if (points[line * sw + left] !== points[line * sw + right]) return false;
      return true;
    };
    for (let left = 0, right = 1; left < sw; left = right++) {
      while (right < sw && same(left, right)) right++;
      for (let top = 0, bottom = 1; top < sh; top = bottom++) {
        const point = points[top * sw + left];
        while (bottom < sh && points[bottom * sw + left] === point) bottom++;
        if (point >>> 24 === 0) continue;
        this.parts.push(`<rect x="${svgNumber(x + left * width / sw)}" y="${svgNumber(y + top * height / sh)}" width="${svgNumber((right - left) * width / sw)}" height="${svgNumber((bottom - top) * height / sh)}" ${svgFill(point)}/>`);
      }
    }
  }
}

/**
 * What is in sight, drawn as on the canvas, with the states that occur in it.
 * @param {import('./timeline.js').TimelineView} timeline
 * @returns {string}
 */
export function timelineSvg(timeline) {
  const { context, theme } = timeline;
  const svg = new SvgContext();
  timeline.context = /** @type {any} */ (svg);
  try {
    timeline.draw();
  } finally {
    timeline.context = context;
  }
  const occurs = new Set((timeline.overview.report.thread_states || []).flatMap((row) => Object.keys(row.states)));
  let [x, base] = [8, timeline.height + 16];
  for (const { label, colour } of namedColours(timeline.overview.states, (name) => occurs.has(name), theme)) {
    const wide = 28 + label.length * 6;
    if (x + wide > timeline.width) [x, base] = [8, base + 16];
    svg.parts.push(`<rect x="${x}" y="${base - 9}" width="10" height="10" ${colour === BLANK ? `fill="none" stroke="${theme.text}"` : `fill="${colour}"`}/><text x="${x + 14}" y="${base}" font-size="11" fill="${theme.text}">${xmlText(label)}</text>`);
    x += wide;
  }
  const [width, height] = [timeline.width, base + 10];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" shape-rendering="crispEdges">`,
    `<rect width="100%" height="100%" fill="${theme.page}"/>`, ...svg.parts, '</svg>',
  ].join('\n');
}
