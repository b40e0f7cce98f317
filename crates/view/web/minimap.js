// The whole run in a strip above the timeline: workers by state, and the visible part as a window that can be moved. Of threads without
// states it shows how many are in a recorded wait, and how many are there otherwise.

import { element } from './elements.js';
import { NOTHING, isThere, paintStack } from './pixels.js';
import { quietTracks } from './rows.js';

/** Height, pixels. */
const TALL = 30;
/** Least width of the window, pixels. */
const MIN_WINDOW = 4;

/** A strip that shows a whole run and moves a timeline. */
export class Minimap {
  /** @param {import('./timeline.js').TimelineView} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    // Keys move the timeline itself, which tells readers of the screen all that this shows.
    this.canvas = /** @type {HTMLCanvasElement} */ (element('canvas', { class: 'minimap', 'aria-hidden': 'true', title: 'the whole run: drag the window, or draw another one' }));
    this.canvas.style.height = `${TALL}px`;
    this.picture = document.createElement('canvas');
    /** What the picture is of. */
    this.painted = '';
    this.canvas.addEventListener('pointerdown', (event) => this.press(event));
    this.canvas.addEventListener('pointermove', (event) => this.drag(event));
    this.canvas.addEventListener('pointerup', () => { this.held = null; });
    this.canvas.addEventListener('pointercancel', () => { this.held = null; });
  }

  /** Where the strip begins and ends: over the rows. */
  get left() { return this.timeline.gutter; }
  get wide() { return Math.max(1, this.timeline.plotWidth); }
  /** @param {number} ns */
  xOf(ns) { return this.left + (ns / this.timeline.length) * this.wide; }
  /** @param {PointerEvent} event */
  timeAt(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    return Math.max(0, Math.min(1, (x - this.left) / this.wide)) * this.timeline.length;
  }

  /** @param {PointerEvent} event */
  press(event) {
    // Of a menu of the browser the end is not told: the strip would follow the pointer for ever.
    if (event.button !== 0) return;
    const at = this.timeAt(event);
    const { from, span, length } = this.timeline;
    const isInside = at >= from && at <= from + span && span < length;
    this.canvas.setPointerCapture(event.pointerId);
    this.held = { at, from, isInside };
    if (!isInside && span < length) this.timeline.show(at - span / 2, at + span / 2);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (!this.held) return;
    const at = this.timeAt(event);
    const { span } = this.timeline;
    if (this.held.isInside) this.timeline.show(this.held.from + at - this.held.at, this.held.from + at - this.held.at + span);
    else if (Math.abs(this.xOf(at) - this.xOf(this.held.at)) > MIN_WINDOW) this.timeline.show(Math.min(at, this.held.at), Math.max(at, this.held.at));
  }

  /** The tracks that are shown: workers, or the threads that have waits only. @returns {number[]} */
  tracks() {
    const { overview } = this.timeline;
    const workers = overview.tracks.filter((track) => track.worker);
    const quiet = quietTracks(overview);
    const { rows } = this.view() || { rows: [] };
    this.isOfWaits = rows.length > 0 && workers.every((track) => quiet.has(track.track));
    return (this.isOfWaits ? overview.tracks : workers).map((track) => track.track);
  }

  /** The view of waits. */
  view() { return this.timeline.overview.views.find(({ name }) => name === 'nested'); }

  /**
   * Threads in a recorded wait, and others, for each pixel; null while a row is on its way.
   * @param {number[]} tracks
   * @param {number} pixels
   * @param {number} states
   * @returns {Float64Array | null} `[pixel][state]`
   */
  waits(tracks, pixels, states) {
    const { source, length, overview } = this.timeline;
    const nsPerPixel = length / pixels;
    const number = (state) => overview.states.findIndex(({ name }) => name === state);
    const [blocked, other] = [number('blocked'), number('unknown')];
    const first = new Map();
    for (const { track, thread } of this.view().rows) if (!first.has(thread)) first.set(thread, track);
    const [columns, values, shares] = [new Uint32Array(pixels), new Uint32Array(pixels), new Float64Array(pixels * states)];
    const missing = { state: [], nested: [] };
    const read = (view, track, isValue) => {
      columns.fill(NOTHING);
      values.fill(0);
      if (!source.columns(view, track, 0, nsPerPixel, columns, isValue ? values : null)) missing[view].push(track);
    };
    for (const track of tracks) {
      read('state', track, false);
      const life = columns.map((bucket) => Number(isThere(bucket, this.timeline.theme)));
      columns.fill(NOTHING);
      if (first.has(track)) read('nested', first.get(track), true);
      for (let x = 0; x < pixels; x++) {
        // A pixel that is mostly empty has the share of that.
        const [kind, part] = [columns[x] & 255, ((columns[x] >> 8) & 255) / 255];
        const waits = values[x] === 0 || kind === 255 ? 0 : kind === 0 ? 1 - part : part;
        shares[x * states + blocked] += life[x] * waits;
        shares[x * states + other] += life[x] * (1 - waits);
      }
      values.fill(0);
    }
    for (const [view, lacking] of Object.entries(missing)) if (lacking.length) source.want(view, lacking, 0, nsPerPixel, pixels);
    return missing.state.length + missing.nested.length ? null : shares;
  }

  draw() {
    const { timeline, canvas } = this;
    const { theme, ratio, width } = timeline;
    const tracks = this.tracks();
    if (canvas.width !== Math.round(width * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(TALL * ratio);
    }
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.page;
    context.fillRect(0, 0, width, TALL);
    const pixels = Math.round(this.wide);
    const tall = TALL - 6;
    const name = `${pixels} ${theme.dark} ${this.isOfWaits}`;
    if (tracks.length && this.painted !== name) {
      const states = timeline.overview.states.length;
      const shares = this.isOfWaits ? this.waits(tracks, pixels, states) : timeline.source.stack('minimap', tracks, 0, timeline.length / pixels, pixels, states);
      if (shares) {
        const image = new ImageData(pixels, tall);
        paintStack(shares, states, tracks.length, new Uint32Array(image.data.buffer), 0, pixels, pixels, tall, theme, timeline.order);
        [this.picture.width, this.picture.height] = [pixels, tall];
        /** @type {CanvasRenderingContext2D} */ (this.picture.getContext('2d')).putImageData(image, 0, 0);
        // While another width is on its way this one is of the width before.
        if (!timeline.source.busy) this.painted = name;
      }
    }
    if (this.picture.width === pixels && this.picture.height === tall) context.drawImage(this.picture, this.left, 3);
    context.fillStyle = theme.text;
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.fillText(timeline.fitLabel('whole run', this.left - 10), 6, TALL / 2);
    const [from, to] = [this.xOf(timeline.from), this.xOf(timeline.from + timeline.span)];
    const [x, wide] = [Math.min(from, this.left + this.wide - MIN_WINDOW), Math.max(MIN_WINDOW, to - from)];
    context.fillStyle = theme.page;
    context.globalAlpha = 0.65;
    context.fillRect(this.left, 3, x - this.left, tall);
    context.fillRect(x + wide, 3, this.left + this.wide - x - wide, tall);
    context.globalAlpha = 1;
    context.strokeStyle = theme.text;
    context.lineWidth = 1.5;
    context.strokeRect(x + 0.75, 2.25, wide - 1.5, tall + 1.5);
    if (timeline.selection) {
      context.fillStyle = theme.marks.finding;
      context.fillRect(this.xOf(timeline.selection.from), TALL - 3, Math.max(2, this.xOf(timeline.selection.to) - this.xOf(timeline.selection.from)), 3);
    }
  }
}
