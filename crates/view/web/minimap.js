// The whole run in a strip above the timeline: workers by state, and the visible part as a window that can be moved. Of threads without
// states it shows the code that runs by samples; without samples how many are in a recorded wait, and how many are there otherwise. Without
// threads it shows how many device queues are busy.

import { element } from './elements.js';
import { codeColours, stateColours } from './palette.js';
import { NOTHING, isThere, paintStack } from './pixels.js';
import { quietTracks } from './rows.js';
import { STACKED_CODE } from './source.js';

/** Height, pixels. */
const TALL = 30;
/** Least width of the window, pixels. */
const MIN_WINDOW = 4;

/** The share of a pixel of a row of values that shows something: one that is mostly empty has the share of that. @param {number} column @param {number} value */
function shareOf(column, value) {
  const [kind, part] = [column & 255, ((column >> 8) & 255) / 255];
  return value === 0 || kind === 255 ? 0 : kind === 0 ? 1 - part : part;
}

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

  /** The view that the strip shows where no worker has states: code by samples, else waits, else device queues; none of states. */
  view() {
    const { overview } = this.timeline;
    const quiet = quietTracks(overview);
    if (overview.tracks.some((track) => track.worker && !quiet.has(track.track))) return undefined;
    return ['code', 'nested', 'devices'].map((name) => overview.views.find((view) => view.name === name)).find((view) => view && view.rows.length);
  }

  /** The tracks or rows that are shown: workers; of other views what has rows. @param {any} view @returns {number[]} */
  tracks(view) {
    const { tracks } = this.timeline.overview;
    if (!view) return tracks.filter((track) => track.worker).map((track) => track.track);
    return view.name === 'nested' ? tracks.map((track) => track.track) : view.rows.map((row) => row.track);
  }

  /** What is stacked: its shares, how many there are, their colours and order. @param {any} view @param {number[]} tracks @param {number} pixels */
  shares(view, tracks, pixels) {
    const { source, length, theme, order, overview } = this.timeline;
    const states = overview.states.length;
    if (view && view.name === 'code') return { shares: source.code(tracks, 0, length / pixels, pixels), count: STACKED_CODE, colourOf: codeColours(theme, overview.states), order: [...Array(STACKED_CODE).keys()].map((place) => (place + 1) % STACKED_CODE) };
    if (view && view.name === 'devices') return { shares: this.busyQueues(view, tracks, pixels), count: 1, colourOf: () => theme.values[0], order: [0] };
    return { shares: view ? this.waits(view, tracks, pixels, states) : source.stack('minimap', tracks, 0, length / pixels, pixels, states), count: states, colourOf: stateColours(theme), order };
  }

  /**
   * The busy lanes of device queues for each pixel; null while a row is on its way.
   * @param {any} view
   * @param {number[]} tracks
   * @param {number} pixels
   * @returns {Float64Array | null}
   */
  busyQueues(view, tracks, pixels) {
    const { source, length } = this.timeline;
    const [columns, values, busy] = [new Uint32Array(pixels), new Uint32Array(pixels), new Float64Array(pixels)];
    /** @type {number[]} */
    const missing = [];
    for (const track of tracks) {
      columns.fill(NOTHING);
      values.fill(0);
      if (!source.columns(view.name, track, 0, length / pixels, columns, values)) missing.push(track);
      for (let x = 0; x < pixels; x++) busy[x] += shareOf(columns[x], values[x]);
    }
    if (missing.length) source.want(view.name, missing, 0, length / pixels, pixels);
    return missing.length ? null : busy;
  }

  /**
   * Threads in a recorded wait, and others, for each pixel; null while a row is on its way.
   * @param {any} view
   * @param {number[]} tracks
   * @param {number} pixels
   * @param {number} states
   * @returns {Float64Array | null} `[pixel][state]`
   */
  waits(view, tracks, pixels, states) {
    const { source, length, overview } = this.timeline;
    const nsPerPixel = length / pixels;
    const number = (state) => overview.states.findIndex(({ name }) => name === state);
    const [blocked, other] = [number('blocked'), number('unknown')];
    const first = new Map();
    for (const { track, thread } of view.rows) if (!first.has(thread)) first.set(thread, track);
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
        const waits = shareOf(columns[x], values[x]);
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
    const view = this.view();
    const tracks = this.tracks(view);
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
    const name = `${pixels} ${theme.dark} ${view && view.name}`;
    if (tracks.length && this.painted !== name) {
      const { shares, count, colourOf, order } = this.shares(view, tracks, pixels);
      if (shares) {
        const image = new ImageData(pixels, tall);
        paintStack(shares, count, tracks.length, new Uint32Array(image.data.buffer), 0, pixels, pixels, tall, colourOf, order);
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
