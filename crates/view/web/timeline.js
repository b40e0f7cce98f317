// The timeline: what of a run is shown and marked, over a common time axis, on one canvas.

import { fitText } from './format.js';
import { codeColours, makeTheme, orderedColour, valueColour } from './palette.js';
import { stackOrder, valueLegend } from './charts.js';
import { element } from './elements.js';
import { listen } from './gestures.js';
import { PAPER_RATIO, isPrinting } from './paper.js';
import { CODE, GUTTER, RULER, ROW_HEIGHTS, fittingHeight, foldedAtFirst, placeNow, placeOf, rowAtHeight, rowKey, rowsOf } from './rows.js';
import { drawTracks } from './tracks.js';
import { drawCounter, drawStack } from './numbers.js';
import { wordsAt } from './hover.js';
import { drawLabels, drawRuler } from './labels.js';
import { drawEdges, drawMarks, drawNotes, noteAt } from './marks.js';

/** @typedef {import('./rows.js').Row} Row */

/** The least room for names of rows, pixels. */
const MIN_GUTTER = 60;

/** Views whose values a search finds. */
const SEARCHED_VIEWS = ['type', 'devices', CODE];

/** The first colour of nested sections beside code by samples, whose functions with most time have the ones before. */
const BESIDE_CODE = 16;

/** The shortest time that a screen shows. */
const MIN_SPAN_NS = 20;

/** @typedef {{from: number, to: number}} Range */

export class TimelineView {
  /**
   * @param {HTMLElement} host
   * @param {any} overview as the library's `Page::overview` gives it
   * @param {any} source where buckets come from
   * @param {{onSection?: (row: Row, at: number, x: number, y: number) => void, onHover?: (row: Row, at: number, x: number, y: number) => void,
   *   onWords?: (row: Row, found: {words: string, start: number, end: number}, x: number, y: number) => void, onLeave?: () => void, onType?: (slot: number, question: {at: number} | {step: 'next' | 'previous'}) => void, onNote?: (note: import('./notes.js').Note, x: number, y: number, isPressed: boolean) => void, onDrawn?: () => void, onSelect?: (range: Range | null) => void, onChange?: () => void, onSay?: (text: string, row: Row) => void}} hooks
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
    /** How tall rows of tracks are: `fit`, or a name of `ROW_HEIGHTS`. */
    this.rowMode = this.fixedHeight ? 'compact' : 'fit';
    /** Room for names of rows. */
    this.gutter = GUTTER;
    /** @type {string[]} */
    this.views = ['state'];
    /** Keys of folded groups. @type {Set<string>} */
    this.collapsed = foldedAtFirst(overview);
    /** @type {import('./rows.js').Chosen} */
    this.chosen = { words: '', top: [], order: '' };
    /** @type {Range | null} */
    this.selection = null;
    this.focusRow = -1;
    this.cursor = -1;
    /** @type {any} */
    this.edges = [];
    /** Arrows of the visible part, where they are wanted. @type {any[]} */
    this.flows = [];
    /** @type {any} */
    this.marked = null;
    /** Notes on the run. @type {import('./notes.js').Note[]} */
    this.notes = [];
    /** How many pixels show each value, by view. @type {Map<string, Map<number, number>>} */
    this.inSight = new Map();
    /** How many pixels show each state, and which flags are in sight. */
    this.statesInSight = new Uint32Array(256);
    this.flagsInSight = 0;
    /** Names in bars, as drawn last. @type {{row: Row, name: string, words: string, left: number, right: number}[]} */
    this.named = [];
    /** Words of the values of views, by view. @type {Map<string, {values: any, words: Map<number, string>}>} */
    this.words = new Map();
    /** Labels that were cut to their room, by room and label. @type {Map<string, string>} */
    this.fitted = new Map();
    this.frames = [];
    this.theme = makeTheme(false, overview.states);
    this.order = stackOrder(overview.states);
    this.setTheme(matchMedia('(prefers-color-scheme: dark)').matches);
    source.onArrival = () => this.redraw();
    this.key = listen(this.target());
    new ResizeObserver(() => this.resize()).observe(host);
    this.resize();
  }

  /** @returns {import('./gestures.js').Target} */
  target() {
    return {
      canvas: this.canvas, plotLeft: () => this.gutter, setGutter: (pixels) => this.setGutter(pixels),
      zoom: (factor, x) => this.zoom(factor, x), pan: (pixels) => this.pan(pixels), scroll: (pixels) => this.scroll(pixels),
      showAll: () => this.show(0, this.length), select: (from, to) => this.select(from, to), clearSelection: () => this.clearSelection(),
      hover: (x, y) => this.hover(x, y), leave: () => this.hooks.onLeave && this.hooks.onLeave(), press: (x, y) => this.press(x, y),
      moveFocus: (rows) => this.moveFocus(rows), stepSection: (step) => this.stepSection(step), openFocus: () => this.openFocus(),
      timeAt: (x) => this.timeAt(x), zoomToSelection: () => this.zoomToSelection(), markSelection: () => this.marked && this.select(this.marked.start, this.marked.end),
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
    const { from, span, scrollY, views, collapsed, chosen, selection, cursor, focusRow } = this;
    return { from, span, scrollY, views, collapsed, chosen, selection, cursor, focusRow };
  }

  /** Shows what another timeline of the same run showed. @param {any} shown */
  showAs(shown) {
    Object.assign(this, shown);
    this.resize();
  }

  /** Places the rows; the focus stays on its row, wherever that is now. */
  layout() {
    const place = (/** @type {number} */ height) => rowsOf(this.overview, this.views, this.collapsed, height, this.chosen);
    const height = this.rowMode === 'fit' ? fittingHeight(place(0), this.host.clientHeight - RULER) : ROW_HEIGHTS[this.rowMode];
    const rows = place(height);
    const had = this.rows && this.rows[this.focusRow];
    if (had) this.focusRow = placeNow(rows, had);
    const last = rows[rows.length - 1];
    this.rows = rows;
    this.total = last ? last.y + last.height : 0;
  }

  get plotWidth() { return this.width - this.gutter; }
  get nsPerPixel() { return this.span / this.plotWidth; }
  /** @param {number} x */
  timeAt(x) { return this.from + Math.max(0, x - this.gutter) * this.nsPerPixel; }
  /** @param {number} ns */
  xOf(ns) { return this.gutter + (ns - this.from) / this.nsPerPixel; }

  /** The row of a track in the first view that shows it, or the one in its place. @param {number} track */
  rowOf(track) { return this.rows.find((row) => row.kind === 'track' && (row.foreign ? row.isThread && row.thread === track : row.track === track)); }

  /** The row of a place: of a thread, or, where it names a view with rows of its own, of that. @param {{track: number, view?: string, thread?: any}} place */
  rowOfPlace(place) {
    if (!place.view) return this.rowOf(place.track);
    const own = this.rows.find((row) => row.kind === 'track' && row.foreign && row.view === place.view && row.track === place.track);
    // Code whose view is not shown is at its thread.
    return own || (place.view === CODE && typeof place.thread === 'number' ? this.rowOf(place.thread) : undefined);
  }

  /** Colours of a view's values: those with names get colours in the order of the names; null where none has. @param {string} view */
  coloursOf(view) {
    const words = this.overview.views.find((row) => row.name === view);
    if (!words || !words.values) return null;
    if (!this.valueColours || this.valueColours.theme !== this.theme) this.valueColours = { theme: this.theme, views: new Map() };
    let known = this.valueColours.views.get(view);
    if (!known || known.values !== words.values) {
      // A function has one colour in all views of samples.
      const ofCode = words.isOfSamples ? codeColours(this.theme, this.overview.states) : null;
      // Nor has anything else that is shown beside code its colour.
      const first = view === 'nested' && this.overview.samples?.length ? BESIDE_CODE : 0;
      const order = new Map(words.values.map(([value], i) => [value, orderedColour(this.theme, first + i)]));
      known = { values: words.values, colour: ofCode || ((value) => order.get(value) ?? valueColour(this.theme, value)) };
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
    return this.rows[rowAtHeight(this.rows, at)];
  }

  /** @param {number} from @param {number} to */
  show(from, to) {
    const span = Math.min(this.length, Math.max(MIN_SPAN_NS, to - from));
    this.span = span;
    this.from = Math.max(0, Math.min(this.length - span, from));
    this.moved();
  }

  /** @param {number} factor of the time shown @param {number} [x] what stays where it is */
  zoom(factor, x) {
    const at = x === undefined || x < this.gutter ? this.gutter + this.plotWidth / 2 : x;
    const fixed = this.timeAt(at);
    const span = Math.min(this.length, Math.max(MIN_SPAN_NS, this.span * factor));
    this.show(fixed - ((at - this.gutter) / this.plotWidth) * span, fixed + (1 - (at - this.gutter) / this.plotWidth) * span);
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

  /** Shows the selected range, or else what is marked with some time around it. */
  zoomToSelection() {
    const { selection, marked } = this;
    if (selection) this.show(selection.from, selection.to);
    else if (marked) {
      const around = (marked.end - marked.start) / 2;
      this.show(marked.start - around, marked.end + around);
    }
  }

  clearSelection() {
    this.selection = null;
    this.edges = [];
    this.marked = null;
    if (this.hooks.onSelect) this.hooks.onSelect(null);
    this.changed();
  }

  /** @param {string} mode `fit`, `compact`, `normal` or `tall` */
  setRowMode(mode) {
    this.rowMode = Object.hasOwn(ROW_HEIGHTS, mode) ? mode : 'fit';
    this.resize();
    this.changed();
  }

  /** @param {number} pixels room for names of rows */
  setGutter(pixels) {
    this.gutter = Math.round(Math.max(MIN_GUTTER, Math.min(this.width / 2, pixels)));
    this.moved();
  }

  /** @param {string[]} views */
  setViews(views) {
    this.views = views;
    this.resize();
  }

  /** Shows the rows whose names have these words; all for none. @param {string} words */
  chooseRows(words) {
    this.chosen = { ...this.chosen, words };
    this.resize();
    this.changed();
  }

  /** Shows threads in this order. @param {string} order a name of `ORDERS` */
  orderRows(order) {
    this.chosen = { ...this.chosen, order };
    this.resize();
    this.changed();
  }

  /** Puts the row that has the focus on top, or takes it away from there. */
  toggleTop() {
    const row = this.rows[this.focusRow];
    if (!row || row.kind !== 'track') return;
    const key = rowKey(row);
    const { top } = this.chosen;
    const isOnTop = top.includes(key);
    this.chosen = { ...this.chosen, top: isOnTop ? top.filter((other) => other !== key) : [...top, key] };
    this.resize();
    this.changed();
    if (this.hooks.onSay) this.hooks.onSay(`${row.label}, ${isOnTop ? 'no longer on top' : 'on top'}`, row);
  }

  /** @param {Row | undefined} row */
  toggleRow(row) {
    if (!row || !row.key || row.kind === 'stack') return;
    if (!this.collapsed.delete(row.key)) this.collapsed.add(row.key);
    // Where the height follows the rows the canvas has another one now.
    this.resize();
    this.say(row);
  }

  /** Tells those who do not see it where the focus is. @param {Row} row */
  say(row) {
    if (this.hooks.onSay) this.hooks.onSay(row.key && this.collapsed.has(row.key) && row.kind !== 'stack' ? `${row.label}, folded` : row.label, row);
  }

  /** @param {number} x @param {number} y */
  hover(x, y) {
    const note = y < RULER && this.hooks.onNote && noteAt(this, x);
    if (note) {
      this.canvas.style.cursor = 'pointer';
      this.hooks.onNote(note, x, y, false);
      return;
    }
    const row = this.rowAt(y);
    const inPlot = row && row.kind === 'track' && x >= this.gutter;
    this.canvas.style.cursor = row && ((row.key && row.kind !== 'stack') || (row.slot !== undefined && this.hooks.onType)) ? 'pointer' : 'default';
    const found = row && row.kind !== 'track' && this.hooks.onWords ? wordsAt(this, row, x) : null;
    if (inPlot && this.hooks.onHover) this.hooks.onHover(row, Math.floor(this.timeAt(x)), x, y);
    else if (found) this.hooks.onWords(row, found, x, y);
    else if (this.hooks.onLeave) this.hooks.onLeave();
  }

  /** @param {number} x @param {number} y */
  press(x, y) {
    const note = y < RULER && this.hooks.onNote && noteAt(this, x);
    if (note) this.hooks.onNote(note, x, y, true);
    const row = this.rowAt(y);
    if (!row) return;
    this.focusRow = this.rows.indexOf(row);
    if (row.slot !== undefined) this.openType(row.slot, x < this.gutter ? this.from + this.span / 2 : this.timeAt(x));
    else if (row.kind !== 'track') this.toggleRow(row);
    else if (x >= this.gutter) {
      this.cursor = Math.floor(this.timeAt(x));
      if (this.hooks.onSection) this.hooks.onSection(row, this.cursor, x, y);
    }
    this.redraw();
  }

  /** Opens a task type at a time. @param {number} slot @param {number} at */
  openType(slot, at) {
    if (!this.hooks.onType) return;
    this.cursor = Math.floor(at);
    this.hooks.onType(slot, { at: Math.max(0, this.cursor) });
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
    if (row && row.slot !== undefined && this.hooks.onType) this.hooks.onType(row.slot, { step });
    if (!row || row.kind !== 'track' || !this.source.json) return;
    const found = await this.source.json('section', { ...placeOf(row), at: Math.max(0, Math.floor(this.cursor)), step });
    if (found) this.reveal(found);
    else if (this.hooks.onSay) this.hooks.onSay(`${row.label}: nothing ${step === 'next' ? 'later' : 'earlier'}`, row);
  }

  openFocus() {
    const row = this.rows[this.focusRow];
    if (!row) return;
    if (row.slot !== undefined) this.openType(row.slot, this.cursor);
    else if (row.kind !== 'track') this.toggleRow(row);
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
    if (!this.rowOfPlace(section)) this.unfold(section);
    const row = this.rowOfPlace(section);
    if (row) {
      this.focusRow = this.rows.indexOf(row);
      this.moveFocus(0);
    }
    this.changed();
  }

  /** Opens the groups that a place is folded into: a row of a view has its own number, and is below its thread. @param {{track: number, view?: string}} place */
  unfold(place) {
    const own = place.view && this.overview.views.find((row) => row.name === place.view);
    const thread = own && own.rows ? own.rows.find((row) => row.track === place.track)?.thread : place.track;
    /** @param {Row} row */
    const holds = ({ kind, key, view, tracks = [] }) => key !== 'all' && tracks.includes(own && own.rows && kind === 'view' && view === place.view ? place.track : thread);
    // A group may be in a group that is folded.
    for (let keys = [' ']; keys.length && !this.rowOfPlace(place);) {
      keys = this.rows.filter(holds).map(({ key }) => key).filter((key) => key && this.collapsed.delete(key));
      this.layout();
    }
    this.resize();
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
    const first = rowAtHeight(this.rows, this.scrollY);
    const visible = [];
    for (let i = first; i < this.rows.length && this.rows[i].y - this.scrollY < height - RULER; i++) visible.push(this.rows[i]);
    // What lies half below the edge comes whole in the next picture.
    const lowest = visible[visible.length - 1];
    if (isPrinting() && visible.length > 1 && lowest.y + lowest.height - this.scrollY > height - RULER) visible.pop();
    this.visible = visible;
    this.named = [];
    drawTracks(this, visible.filter((row) => row.kind === 'track'));
    for (const row of visible) {
      if (row.kind === 'stack') drawStack(this, row);
      else if (row.kind === 'counter' && this.source.counter) drawCounter(this, row);
    }
    drawLabels(this, visible);
    drawEdges(this);
    drawMarks(this);
    drawRuler(this);
    drawNotes(this);
    if (this.hooks.onDrawn) this.hooks.onDrawn();
  }

  /** Legends of the shown views whose values have names, for what is in sight. @param {(label: string) => void} [pick] what a click on a value does, where a search finds values @returns {HTMLElement[]} */
  valueLegends(pick = undefined) {
    return this.views.flatMap((view) => {
      const words = this.overview.views.find((row) => row.name === view);
      const [colour, inSight] = [this.coloursOf(view), this.inSight.get(view)];
      return words && colour && inSight && words.values.length ? [valueLegend(words, colour, inSight, SEARCHED_VIEWS.includes(view) ? pick : undefined)] : [];
    });
  }

  /** Names of a view's values; null where it has none. @param {string} view @returns {Map<number, string> | null} */
  wordsOf(view) {
    const { values } = this.overview.views.find((row) => row.name === view) || {};
    if (!values || !values.length) return null;
    let known = this.words.get(view);
    if (!known || known.values !== values) this.words.set(view, (known = { values, words: new Map(values) }));
    return known.words;
  }

  /** A label in so many pixels, in the font that is set, cut in its middle. @param {string} label @param {number} room */
  fitLabel(label, room) {
    const key = `${this.context.font} ${Math.floor(room)} ${label}`;
    let words = this.fitted.get(key);
    if (words === undefined) {
      const wide = (/** @type {string} */ text) => this.context.measureText(text).width;
      words = fitText(label, 200);
      const whole = wide(words);
      // Letters differ in width: the first guess is near, and not too long.
      for (let letters = Math.ceil((words.length * room) / whole) + 2; wide(words) > room && letters >= 3; letters--) words = fitText(label, letters);
      if (this.fitted.size > 20000) this.fitted.clear();
      this.fitted.set(key, words);
    }
    return words;
  }
}
