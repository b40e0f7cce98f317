// The timeline: rows of tracks over a common time axis, drawn on one canvas, one image row per track.

import { formatCount, formatPoint, formatTime, fitText } from './format.js';
import { cssColour, makeTheme, orderedColour, valueColour } from './palette.js';
import { SUB, paintTrack, paintStack, NOTHING } from './pixels.js';
import { stackOrder, valueLegend } from './charts.js';
import { element } from './elements.js';
import { listen } from './gestures.js';
import { PAPER_RATIO, isPrinting } from './paper.js';

const GUTTER = 150;
const RULER = 24;
const HEADER = 18;
const STACK = 34;
const COUNTER = 34;
const SHARE = 22;
/** The shortest time that a screen shows. */
const SHORTEST_NS = 20;

/**
 * @typedef {{kind: 'node' | 'process' | 'view' | 'track' | 'counter' | 'stack', y: number, height: number, label: string,
 *   track?: number, view?: string, key?: string, tracks?: number[], counter?: string, slot?: number, foreign?: boolean, thread?: number | null}} Row
 * A foreign row is no thread of the execution: a row of a model's view, or of a device queue.
 * @typedef {{from: number, to: number}} Range
 */

/** What a thread or CPU is called. @param {{tid: number, kind: string, worker: boolean}} track */
export function trackLabel(track) {
  if (track.kind === 'cpu') return `CPU ${track.tid}`;
  return `thread ${track.tid}${track.worker || track.kind === 'unknown' ? '' : ` (${track.kind})`}`;
}

/** What a process is called. @param {{pid: number, cpus: boolean, rank: number | null}} process */
function processLabel(process) {
  if (process.cpus) return 'CPUs';
  return `process ${process.pid}${typeof process.rank === 'number' ? ` (rank ${process.rank})` : ''}`;
}

/** A row as the server knows it. @param {Row} row */
export function placeOf(row) {
  return row.foreign ? { view: row.view, track: row.track } : { track: row.track };
}

export class TimelineView {
  /**
   * @param {HTMLElement} host
   * @param {any} overview as the library's `Page::overview` gives it
   * @param {any} source where buckets come from
   * @param {{onSection?: (row: Row, at: number, x: number, y: number) => void, onHover?: (row: Row, at: number, x: number, y: number) => void,
   *   onNumbers?: (row: Row, numbers: any, x: number, y: number) => void, onLeave?: () => void, onDrawn?: () => void, onSelect?: (range: Range | null) => void, onChange?: () => void, onSay?: (text: string) => void}} hooks
   * @param {{height?: number}} options
   */
  constructor(host, overview, source, hooks = {}, options = {}) {
    this.overview = overview;
    this.source = source;
    this.hooks = hooks;
    this.length = overview.length_ns;
    this.canvas = /** @type {HTMLCanvasElement} */ (element('canvas', {
      class: 'timeline', tabindex: 0, role: 'application', 'aria-roledescription': 'timeline',
      // A file knows buckets, and no sections to go to.
      'aria-label': `Timeline of threads. Arrow keys move, plus and minus zoom${source.json ? ', comma and full stop go from section to section, Enter opens one' : ''}.`,
    }));
    this.host = host;
    this.fixedHeight = options.height || 0;
    host.append(this.canvas);
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d'));
    this.image = document.createElement('canvas');
    /** What is shown; everything that a link restores. */
    this.from = 0;
    this.span = this.length;
    this.scrollY = 0;
    this.rowHeight = 16;
    /** @type {string[]} */
    this.views = ['state'];
    /** @type {Set<string>} */
    this.collapsed = new Set();
    /** @type {Range | null} */
    this.selection = null;
    this.focusRow = -1;
    this.cursor = -1;
    /** @type {any} */
    this.edges = [];
    /** @type {any} */
    this.marked = null;
    /** How many pixels show each value, by view. @type {Map<string, Map<number, number>>} */
    this.inSight = new Map();
    /** Labels that were cut to their room, by room and label. @type {Map<string, string>} */
    this.fitted = new Map();
    this.frames = [];
    this.theme = makeTheme(false, overview.states);
    this.order = stackOrder(overview.states);
    this.plotLeft = GUTTER;
    this.setTheme(matchMedia('(prefers-color-scheme: dark)').matches);
    source.onArrival = () => this.redraw();
    this.key = listen(this.target());
    new ResizeObserver(() => this.resize()).observe(host);
    this.resize();
  }

  /** @returns {import('./gestures.js').Target} */
  target() {
    return {
      canvas: this.canvas, plotLeft: GUTTER,
      zoom: (factor, x) => this.zoom(factor, x), pan: (pixels) => this.pan(pixels), scroll: (pixels) => this.scroll(pixels),
      showAll: () => this.show(0, this.length), select: (from, to) => this.select(from, to), clearSelection: () => this.clearSelection(),
      hover: (x, y) => this.hover(x, y), leave: () => this.hooks.onLeave && this.hooks.onLeave(), press: (x, y) => this.press(x, y),
      moveFocus: (rows) => this.moveFocus(rows), stepSection: (step) => this.stepSection(step), openFocus: () => this.openFocus(),
      timeAt: (x) => this.timeAt(x), zoomToSelection: () => this.selection && this.show(this.selection.from, this.selection.to),
      toggle: () => this.toggleRow(this.rows[this.focusRow]),
    };
  }

  /** @param {boolean} dark */
  setTheme(dark) {
    this.theme = makeTheme(dark, this.overview.states);
    this.redraw();
  }

  resize() {
    this.ratio = isPrinting() ? PAPER_RATIO : window.devicePixelRatio || 1;
    this.width = Math.max(320, this.host.clientWidth);
    this.layout();
    this.height = this.fixedHeight ? Math.min(this.fixedHeight, this.total + RULER) : Math.max(120, this.host.clientHeight);
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    this.canvas.style.height = `${this.height}px`;
    // Where all rows are in sight a finger that goes up or down scrolls the page.
    this.canvas.style.touchAction = this.mostScroll === 0 ? 'pan-y' : 'none';
    this.scroll(0);
    this.redraw();
  }

  /** What is shown and marked, for another timeline of the same run. */
  get shown() {
    const { from, span, scrollY, views, collapsed, selection, cursor, focusRow } = this;
    return { from, span, scrollY, views, collapsed, selection, cursor, focusRow };
  }

  /** Shows what another timeline of the same run showed. @param {any} shown */
  showAs(shown) {
    Object.assign(this, shown);
    this.resize();
  }

  /** Puts rows one under the other: views, in them nodes, processes, threads; then counters. */
  layout() {
    /** @type {Row[]} */
    const rows = [];
    let y = 0;
    const add = (row) => { rows.push({ ...row, y }); y += row.height; };
    const { processes, tracks } = this.overview;
    const nodes = [...new Set(tracks.map((track) => processes[track.process].node))];
    if (tracks.length) add({ kind: 'stack', height: STACK, label: 'workers by state', key: 'all', tracks: tracks.filter((track) => track.worker).map((track) => track.track) });
    for (const view of this.views) {
      const words = this.overview.views.find((row) => row.name === view);
      if (!words) continue;
      if (!words.rows && tracks.length === 0) continue;
      add({ kind: 'view', height: HEADER, label: words.rows ? words.label : `threads: ${words.label}`, key: `view ${view}` });
      if (this.collapsed.has(`view ${view}`)) continue;
      if (words.rows) {
        for (const row of words.rows) add({ kind: 'track', height: this.rowHeight, label: row.label, track: row.track, view, foreign: true, thread: row.thread });
        continue;
      }
      for (const node of nodes) {
        const ofNode = tracks.filter((track) => processes[track.process].node === node);
        const nodeKey = `${view} ${node}`;
        if (nodes.length > 1) add({ kind: 'node', height: HEADER, label: node, key: nodeKey, tracks: ofNode.map((track) => track.track) });
        if (this.collapsed.has(nodeKey)) {
          add({ kind: 'stack', height: STACK, label: 'threads by state', key: nodeKey, tracks: ofNode.map((track) => track.track) });
          continue;
        }
        for (const process of new Set(ofNode.map((track) => track.process))) {
          const own = ofNode.filter((track) => track.process === process);
          const key = `${view} ${node} ${processes[process].cpus ? 'CPUs' : processes[process].pid}`;
          const many = processes.length > 1;
          if (many) add({ kind: 'process', height: HEADER, label: processLabel(processes[process]), key, tracks: own.map((track) => track.track) });
          if (many && this.collapsed.has(key)) {
            add({ kind: 'stack', height: STACK, label: 'threads by state', key, tracks: own.map((track) => track.track) });
            continue;
          }
          for (const track of own) {
            add({ kind: 'track', height: this.rowHeight, label: trackLabel(track), track: track.track, view });
          }
        }
      }
    }
    const types = this.overview.task_types || [];
    if (types.length + this.overview.counters.length > 0) {
      add({ kind: 'view', height: HEADER, label: 'tasks: threads that run each type; counters', key: 'tasks' });
      if (!this.collapsed.has('tasks')) {
        types.forEach((label, slot) => add({ kind: 'counter', height: SHARE, label: fitText(label, 60), slot }));
        for (const counter of this.overview.counters) add({ kind: 'counter', height: COUNTER, label: counter.label, counter: counter.name });
      }
    }
    // The focus stays on its row, wherever that is now.
    const had = this.rows && this.rows[this.focusRow];
    const alike = (/** @type {Row} */ row) => had && row.kind === had.kind && row.track === had.track && row.label === had.label;
    if (had) this.focusRow = Math.max(rows.findIndex((row) => alike(row) && row.view === had.view), -1);
    if (had && this.focusRow < 0) this.focusRow = rows.findIndex(alike);
    if (had && this.focusRow < 0) this.focusRow = rows.findIndex((row) => row.kind === had.kind);
    this.rows = rows;
    this.total = y;
  }

  get plotWidth() { return this.width - GUTTER; }
  get nsPerPixel() { return this.span / this.plotWidth; }
  /** @param {number} x */
  timeAt(x) { return this.from + Math.max(0, x - GUTTER) * this.nsPerPixel; }
  /** @param {number} ns */
  xOf(ns) { return GUTTER + (ns - this.from) / this.nsPerPixel; }

  /** The row of a track in the first view that shows it. @param {number} track */
  rowOf(track) { return this.rows.find((row) => row.kind === 'track' && row.track === track && !row.foreign); }

  /** The row of a place: of a thread, or, where it names a view with rows of its own, of that. @param {{track: number, view?: string}} place */
  rowOfPlace(place) {
    return place.view ? this.rows.find((row) => row.kind === 'track' && row.foreign && row.view === place.view && row.track === place.track) : this.rowOf(place.track);
  }

  /** Colours of a view's values: those with names get colours in the order of the names; null where none has. @param {string} view */
  coloursOf(view) {
    const words = this.overview.views.find((row) => row.name === view);
    if (!words || !words.values) return null;
    if (!this.valueColours || this.valueColours.theme !== this.theme) this.valueColours = { theme: this.theme, views: new Map() };
    let known = this.valueColours.views.get(view);
    if (!known || known.values !== words.values) {
      const order = new Map(words.values.map(([value], i) => [value, orderedColour(this.theme, i)]));
      known = { values: words.values, colour: (value) => order.get(value) ?? valueColour(this.theme, value) };
      this.valueColours.views.set(view, known);
    }
    return known.colour;
  }
  /** Middle of a row on the canvas. @param {Row} row */
  yOf(row) { return RULER + row.y + row.height / 2 - this.scrollY; }

  /** @param {number} y @returns {Row | undefined} */
  rowAt(y) {
    if (y < RULER) return undefined;
    const at = y - RULER + this.scrollY;
    return this.rows[this.firstRow(at)];
  }

  /** The row that holds a height. @param {number} at */
  firstRow(at) {
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].y + this.rows[middle].height <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** @param {number} from @param {number} to */
  show(from, to) {
    const span = Math.min(this.length, Math.max(SHORTEST_NS, to - from));
    this.span = span;
    this.from = Math.max(0, Math.min(this.length - span, from));
    this.moved();
  }

  /** @param {number} factor of the time shown @param {number} [x] what stays where it is */
  zoom(factor, x) {
    const at = x === undefined || x < GUTTER ? GUTTER + this.plotWidth / 2 : x;
    const fixed = this.timeAt(at);
    const span = Math.min(this.length, Math.max(SHORTEST_NS, this.span * factor));
    this.show(fixed - ((at - GUTTER) / this.plotWidth) * span, fixed + (1 - (at - GUTTER) / this.plotWidth) * span);
  }

  /** @param {number} pixels */
  pan(pixels) {
    const from = this.from + pixels * this.nsPerPixel;
    this.show(from, from + this.span);
  }

  /** How far down rows can be scrolled. */
  get mostScroll() { return Math.max(0, this.total + RULER - this.height); }

  /** @param {number} pixels @returns {boolean} whether rows moved */
  scroll(pixels) {
    const before = this.scrollY;
    this.scrollY = Math.max(0, Math.min(this.mostScroll, this.scrollY + pixels));
    this.moved();
    return this.scrollY !== before;
  }

  /** @param {number} from @param {number} to */
  select(from, to) {
    const clamp = (ns) => Math.round(Math.max(0, Math.min(this.length, ns)));
    this.selection = { from: clamp(Math.min(from, to)), to: clamp(Math.max(from, to)) };
    if (this.hooks.onSelect) this.hooks.onSelect(this.selection);
    this.changed();
  }

  clearSelection() {
    this.selection = null;
    this.edges = [];
    this.marked = null;
    if (this.hooks.onSelect) this.hooks.onSelect(null);
    this.changed();
  }

  /** @param {string[]} views */
  setViews(views) {
    this.views = views;
    this.layout();
    this.scroll(0);
  }

  /** @param {Row | undefined} row */
  toggleRow(row) {
    if (!row || !row.key || row.kind === 'stack') return;
    if (!this.collapsed.delete(row.key)) this.collapsed.add(row.key);
    this.layout();
    this.scroll(0);
    this.say(row);
  }

  /** Tells those who do not see it where the focus is. @param {Row} row */
  say(row) {
    if (this.hooks.onSay) this.hooks.onSay(row.key && this.collapsed.has(row.key) && row.kind !== 'stack' ? `${row.label}, folded` : row.label);
  }

  /** @param {number} x @param {number} y */
  hover(x, y) {
    const row = this.rowAt(y);
    const inPlot = row && row.kind === 'track' && x >= GUTTER;
    this.canvas.style.cursor = row && row.key && row.kind !== 'stack' ? 'pointer' : 'default';
    const onNumbers = row && row.kind === 'counter' && x >= GUTTER && this.hooks.onNumbers;
    if (inPlot && this.hooks.onHover) this.hooks.onHover(row, Math.floor(this.timeAt(x)), x, y);
    else if (onNumbers) this.hooks.onNumbers(row, this.numbersAt(row, this.timeAt(x)), x, y);
    else if (this.hooks.onLeave) this.hooks.onLeave();
  }

  /** @param {number} x @param {number} y */
  press(x, y) {
    const row = this.rowAt(y);
    if (!row) return;
    this.focusRow = this.rows.indexOf(row);
    if (row.kind !== 'track') this.toggleRow(row);
    else if (x >= GUTTER) {
      this.cursor = Math.floor(this.timeAt(x));
      if (this.hooks.onSection) this.hooks.onSection(row, this.cursor, x, y);
    }
    this.redraw();
  }

  /** @param {number} rows */
  moveFocus(rows) {
    this.focusRow = Math.max(0, Math.min(this.rows.length - 1, this.focusRow + rows));
    const row = this.rows[this.focusRow];
    if (this.cursor < this.from || this.cursor > this.from + this.span) this.cursor = Math.floor(this.from + this.span / 2);
    if (row.y < this.scrollY) this.scroll(row.y - this.scrollY);
    const below = row.y + row.height + RULER - this.height;
    if (below > this.scrollY) this.scroll(below - this.scrollY);
    this.say(row);
    this.redraw();
  }

  /** @param {'next' | 'previous'} step */
  async stepSection(step) {
    const row = this.rows[this.focusRow];
    if (!row || row.kind !== 'track' || !this.source.json) return;
    const found = await this.source.json('section', { ...placeOf(row), at: Math.max(0, Math.floor(this.cursor)), step });
    if (found) this.reveal(found);
  }

  openFocus() {
    const row = this.rows[this.focusRow];
    if (!row) return;
    if (row.kind !== 'track') this.toggleRow(row);
    else if (this.hooks.onSection) this.hooks.onSection(row, Math.max(0, this.cursor), this.xOf(this.cursor), this.yOf(row));
  }

  /**
   * Brings a section into sight, marks it and puts the cursor there.
   * @param {{track: number, view?: string, start: number, end: number}} section
   */
  reveal(section) {
    this.marked = section;
    this.cursor = section.start;
    const length = Math.max(1, section.end - section.start);
    if (length > this.span || length < this.span / 400 || section.start < this.from || section.end > this.from + this.span) {
      const span = Math.min(this.length, Math.max(length * 8, Math.min(this.span, length * 200)));
      this.show(section.start + length / 2 - span / 2, section.start + length / 2 + span / 2);
    }
    const row = this.rowOfPlace(section);
    if (row) {
      this.focusRow = this.rows.indexOf(row);
      this.moveFocus(0);
    }
    this.changed();
  }

  /** Something else lies under the pointer now. */
  moved() {
    if (this.hooks.onLeave) this.hooks.onLeave();
    this.changed();
  }

  changed() {
    this.redraw();
    if (this.hooks.onChange) this.hooks.onChange();
  }

  redraw() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      const begun = performance.now();
      this.draw();
      // The last frames' times, for the speed test and the curious.
      this.frames.push(performance.now() - begun);
      if (this.frames.length > 600) this.frames.shift();
    });
  }

  /**
   * Pictures of all rows, from the first one on, each as tall as the canvas: on paper nobody can scroll.
   * @param {number} most pictures
   * @returns {{pictures: HTMLCanvasElement[], left: number}} and how many rows are left out
   */
  picturesForPaper(most) {
    const pictures = [];
    const { scrollY } = this;
    let first = 0;
    for (; first < this.rows.length && pictures.length < most; first += this.visible.length) {
      this.scrollY = this.rows[first].y;
      pictures.push(this.pictureInSight());
    }
    this.scrollY = scrollY;
    return { pictures, left: this.rows.length - first };
  }

  /** A picture of the rows in sight, without the empty part below them. @returns {HTMLCanvasElement} */
  pictureInSight() {
    this.draw();
    const copy = /** @type {HTMLCanvasElement} */ (this.canvas.cloneNode());
    const last = this.visible[this.visible.length - 1];
    const tall = Math.ceil(last.y + last.height - this.scrollY + RULER);
    copy.height = Math.round(tall * this.ratio);
    copy.style.height = `${tall}px`;
    /** @type {CanvasRenderingContext2D} */ (copy.getContext('2d')).drawImage(this.canvas, 0, 0);
    return copy;
  }

  draw() {
    const { context, theme, ratio, width, height } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.page;
    context.fillRect(0, 0, width, height);
    const first = this.firstRow(this.scrollY);
    const visible = [];
    for (let i = first; i < this.rows.length && this.rows[i].y - this.scrollY < height - RULER; i++) visible.push(this.rows[i]);
    // What lies half below the edge comes whole in the next picture.
    const lowest = visible[visible.length - 1];
    if (isPrinting() && visible.length > 1 && lowest.y + lowest.height - this.scrollY > height - RULER) visible.pop();
    this.visible = visible;
    this.drawTracks(visible.filter((row) => row.kind === 'track'));
    for (const row of visible) {
      if (row.kind === 'stack') this.drawStack(row);
      else if (row.kind === 'counter' && this.source.counter) this.drawCounter(row);
    }
    this.drawLabels(visible);
    this.drawEdges();
    this.drawMarks();
    this.drawRuler();
    if (this.hooks.onDrawn) this.hooks.onDrawn();
  }

  /** @param {Row[]} rows */
  drawTracks(rows) {
    this.inSight.clear();
    if (rows.length === 0) return;
    const { theme, context, ratio } = this;
    const pixels = Math.max(1, Math.round(this.plotWidth * ratio));
    const nsPerPixel = this.span / pixels;
    const image = new ImageData(pixels, rows.length * SUB);
    const numbers = new Uint32Array(image.data.buffer);
    const columns = new Uint32Array(pixels);
    const values = new Uint32Array(pixels);
    /** @type {Map<string, number[]>} */
    const missing = new Map();
    rows.forEach((row, i) => {
      const view = row.view || 'state';
      const own = view === 'state' ? null : values;
      columns.fill(NOTHING);
      if (!this.source.columns(view, row.track, this.from, nsPerPixel, columns, own)) {
        const list = missing.get(view) || [];
        list.push(/** @type {number} */ (row.track));
        missing.set(view, list);
      }
      const colours = own && this.coloursOf(view);
      if (colours) this.countValues(view, columns, values);
      paintTrack(columns, own, numbers, i * SUB * pixels, pixels, theme, colours, row.foreign, Boolean(this.source.filter) && !row.foreign);
    });
    this.image.width = pixels;
    this.image.height = rows.length * SUB;
    /** @type {CanvasRenderingContext2D} */ (this.image.getContext('2d')).putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    rows.forEach((row, i) => {
      const y = RULER + row.y - this.scrollY;
      context.drawImage(this.image, 0, i * SUB, pixels, SUB, GUTTER, y + 1, this.plotWidth, row.height - 2);
    });
    for (const [view, tracks] of missing) this.source.want(view, tracks.sort((a, b) => a - b), this.from, nsPerPixel, pixels);
  }

  /** Legends of the shown views whose values have names, for what is in sight. @returns {HTMLElement[]} */
  valueLegends() {
    return this.views.flatMap((view) => {
      const words = this.overview.views.find((row) => row.name === view);
      const [colour, inSight] = [this.coloursOf(view), this.inSight.get(view)];
      return words && colour && inSight && words.values.length ? [valueLegend(words, colour, inSight)] : [];
    });
  }

  /** Adds how many pixels of a row show each value. @param {string} view @param {Uint32Array} columns @param {Uint32Array} values */
  countValues(view, columns, values) {
    let counts = this.inSight.get(view);
    if (!counts) this.inSight.set(view, (counts = new Map()));
    for (let first = 0, x = 1; first < values.length; first = x++) {
      while (x < values.length && values[x] === values[first]) x++;
      // What a pixel shows that has nothing is left from before.
      if ((columns[first] & 255) !== 255) counts.set(values[first], (counts.get(values[first]) || 0) + x - first);
    }
  }

  /** @param {Row} row */
  drawStack(row) {
    const states = this.overview.states.length;
    const pixels = Math.max(1, Math.round(this.plotWidth));
    const shares = this.source.stack(row.key, row.tracks || [], this.from, this.span / pixels, pixels, states);
    if (!shares) return;
    const tall = row.height - 4;
    const image = new ImageData(pixels, tall);
    paintStack(shares, states, Math.max(1, (row.tracks || []).length), new Uint32Array(image.data.buffer), 0, pixels, pixels, tall, this.theme, this.order);
    this.image.width = pixels;
    this.image.height = tall;
    /** @type {CanvasRenderingContext2D} */ (this.image.getContext('2d')).putImageData(image, 0, 0);
    this.context.drawImage(this.image, GUTTER, RULER + row.y - this.scrollY + 2, this.plotWidth, tall);
  }

  /**
   * What a row of numbers shows: minimum, mean and maximum of each bucket; of types only the mean.
   * @param {Row} row
   * @returns {{most: number, min: (number | null)[] | null, mean: (number | null)[], max: (number | null)[] | null, bucketNs: number, offset: number} | null}
   */
  seriesOf(row) {
    const pixels = Math.max(1, Math.round(this.plotWidth));
    if (row.slot === undefined) return this.source.counter(row.counter, this.from, this.span / pixels, pixels);
    const types = this.source.types(this.from, this.span / pixels, pixels);
    if (!types) return null;
    const mean = Array.from({ length: types.buckets }, (_, i) => types.data[i * types.rows + row.slot]);
    return { most: mean.reduce((most, value) => Math.max(most, value), 0), min: null, mean, max: null, bucketNs: types.bucketNs, offset: types.offset };
  }

  /** What a row of numbers shows at a time. @param {Row} row @param {number} at */
  numbersAt(row, at) {
    const data = this.seriesOf(row);
    const bucket = data ? Math.floor((at - data.offset) / data.bucketNs) : -1;
    if (!data || bucket < 0 || bucket >= data.mean.length || data.mean[bucket] === null) return null;
    const start = data.offset + bucket * data.bucketNs;
    return { start, end: start + data.bucketNs, min: data.min && data.min[bucket], mean: data.mean[bucket], max: data.max && data.max[bucket] };
  }

  /** @param {Row} row */
  drawCounter(row) {
    const data = this.seriesOf(row);
    if (!data || data.most === 0) return;
    const { context, theme } = this;
    const tall = row.height - 6;
    const base = RULER + row.y - this.scrollY + row.height - 3;
    const y = (value) => base - (value / data.most) * tall;
    const top = data.max || data.mean;
    context.save();
    context.beginPath();
    context.rect(GUTTER, RULER, this.plotWidth, this.height);
    context.clip();
    context.fillStyle = row.slot === undefined ? theme.state[0] : cssColour(orderedColour(theme, row.slot));
    const first = Math.max(0, Math.floor((this.from - data.offset) / data.bucketNs));
    const last = Math.min(data.mean.length - 1, Math.ceil((this.from + this.span - data.offset) / data.bucketNs));
    for (let i = first; i <= last; i++) {
      if (data.mean[i] === null) continue;
      const left = this.xOf(data.offset + i * data.bucketNs);
      const wide = Math.max(1, data.bucketNs / this.nsPerPixel);
      // From nothing to the minimum dense, on to the maximum light, the mean as a line.
      const low = data.min ? y(data.min[i]) : y(data.mean[i]);
      context.globalAlpha = 0.3;
      context.fillRect(left, y(top[i]), wide, Math.max(0.5, low - y(top[i])));
      context.globalAlpha = data.max ? 0.65 : 1;
      context.fillRect(left, low, wide, base - low);
      context.globalAlpha = 1;
      if (data.max) context.fillRect(left, y(data.mean[i]) - 0.75, wide, 1.5);
    }
    context.restore();
    context.fillStyle = theme.text;
    context.font = '10px system-ui, sans-serif';
    context.textAlign = 'left';
    const words = `most ${data.most >= 100 || Number.isInteger(data.most) ? formatCount(data.most) : data.most.toPrecision(2)}`;
    // Words that lie on bars have a border of the page's colour.
    context.strokeStyle = theme.page;
    context.lineWidth = 3;
    context.lineJoin = 'round';
    context.strokeText(words, GUTTER + 4, base - tall + 8);
    context.fillText(words, GUTTER + 4, base - tall + 8);
  }

  /** A label in so many pixels, in the font that is set. @param {string} label @param {number} room */
  fitLabel(label, room) {
    const key = `${Math.round(room)} ${label}`;
    let words = this.fitted.get(key);
    if (words === undefined) {
      let letters = Math.min(label.length, 60);
      while (this.context.measureText((words = fitText(label, letters))).width > room && letters > 3) letters--;
      if (this.fitted.size > 10000) this.fitted.clear();
      this.fitted.set(key, words);
    }
    return words;
  }

  /** @param {Row[]} visible */
  drawLabels(visible) {
    const { context, theme } = this;
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    for (const row of visible) {
      const y = RULER + row.y - this.scrollY;
      const header = row.kind === 'view' || row.kind === 'node' || row.kind === 'process';
      if (header) {
        context.fillStyle = theme.dark ? '#23272c' : '#eef0f2';
        context.fillRect(0, y, this.width, row.height);
      }
      if (this.rows[this.focusRow] === row) {
        context.strokeStyle = theme.marks.finding;
        context.lineWidth = 1.5;
        context.strokeRect(1, y + 0.5, this.width - 2, row.height - 1);
      }
      context.fillStyle = theme.text;
      context.textAlign = 'left';
      const sign = header ? (this.collapsed.has(row.key || '') ? '▸ ' : '▾ ') : '';
      const indent = row.kind === 'track' ? 18 : row.kind === 'process' ? 12 : 6;
      context.fillText(this.fitLabel(sign + row.label, (header ? this.width : GUTTER - 4) - indent), indent, y + row.height / 2 + 0.5);
    }
    context.textBaseline = 'alphabetic';
  }

  /** Lines between tasks: from where one ended or created to where the other began. */
  drawEdges() {
    const { context, theme } = this;
    context.save();
    context.beginPath();
    context.rect(GUTTER, RULER, this.plotWidth, this.height - RULER);
    context.clip();
    for (const edge of this.edges) {
      const [from, to] = [this.rowOf(edge.fromTrack), this.rowOfPlace({ track: edge.toTrack, view: edge.toView })];
      if (!from || !to) continue;
      const [x1, y1, x2, y2] = [this.xOf(edge.from), this.yOf(from), this.xOf(edge.to), this.yOf(to)];
      context.strokeStyle = edge.critical ? theme.marks.long : theme.text;
      context.lineWidth = edge.critical ? 2.5 : 1.2;
      context.setLineDash(edge.kind === 'creator' ? [5, 4] : []);
      context.beginPath();
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + 24, y1, x2 - 24, y2, x2, y2);
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = context.strokeStyle;
      context.beginPath();
      context.moveTo(x2, y2);
      context.lineTo(x2 - 7, y2 - 4);
      context.lineTo(x2 - 7, y2 + 4);
      context.fill();
    }
    context.restore();
  }

  drawMarks() {
    const { context, theme } = this;
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, this.plotWidth, this.height);
    context.clip();
    if (this.marked) {
      const row = this.rowOfPlace(this.marked);
      if (row) {
        const left = this.xOf(this.marked.start);
        context.strokeStyle = theme.marks.match;
        context.lineWidth = 2;
        context.strokeRect(left, RULER + row.y - this.scrollY, Math.max(3, this.xOf(this.marked.end) - left), row.height);
      }
    }
    if (this.selection) {
      const [left, right] = [this.xOf(this.selection.from), this.xOf(this.selection.to)];
      context.globalAlpha = 0.18;
      context.fillStyle = theme.marks.finding;
      context.fillRect(left, 0, right - left, this.height);
      context.globalAlpha = 1;
      context.fillRect(left - 0.5, 0, 1, this.height);
      context.fillRect(right - 0.5, 0, 1, this.height);
    }
    if (this.cursor >= this.from && this.cursor <= this.from + this.span) {
      context.fillStyle = theme.text;
      context.globalAlpha = 0.5;
      context.fillRect(this.xOf(this.cursor), RULER, 1, this.height);
    }
    context.restore();
  }

  drawRuler() {
    const { context, theme } = this;
    context.fillStyle = theme.page;
    context.fillRect(0, 0, this.width, RULER);
    const least = this.nsPerPixel * 110;
    const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least) || least;
    context.fillStyle = theme.text;
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'left';
    let end = GUTTER;
    for (let at = Math.ceil(this.from / step) * step; at <= this.from + this.span; at += step) {
      const x = this.xOf(at);
      context.fillRect(x, RULER - 6, 1, 6);
      const words = formatPoint(at, step);
      const wide = context.measureText(words).width;
      // At the right edge there may be room on the left; where there is none, the line stands alone.
      const left = x + 3 + wide <= this.width ? x + 3 : x - 3 - wide;
      if (left < end) continue;
      context.fillText(words, left, 12);
      end = left + wide + 6;
    }
    context.fillText(formatTime(this.span), 6, 14);
    if (this.selection) {
      const words = `selected ${formatTime(this.selection.to - this.selection.from)}`;
      context.textAlign = 'center';
      context.font = 'bold 11px system-ui, sans-serif';
      const x = Math.max(GUTTER + 60, Math.min(this.width - 60, (this.xOf(this.selection.from) + this.xOf(this.selection.to)) / 2));
      const half = context.measureText(words).width / 2 + 3;
      context.fillStyle = theme.page;
      context.fillRect(x - half, 0, 2 * half, RULER);
      context.fillStyle = theme.text;
      context.fillText(words, x, RULER - 8);
    }
  }
}
