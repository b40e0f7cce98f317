// The viewer: the timeline over the whole window, with search, tables of a range, and tasks.

import { element } from './elements.js';
import { formatCount, formatTime, fitText } from './format.js';
import { legend } from './charts.js';
import { makeTheme } from './palette.js';
import { FINDING, LONG_WAIT, LOST, OFF_CPU, UNCERTAIN } from './pixels.js';
import { ServerSource } from './source.js';
import { TimelineView } from './timeline.js';
import { Minimap } from './minimap.js';
import { trackLabel, viewsAtFirst } from './rows.js';
import { saveFile } from './files.js';
import { timelinePng, timelineSvg } from './picture.js';
import { onPaper } from './paper.js';
import { fillViews, setViews, shownView, loadShown, showChosen, loadModels, loadNested } from './views.js';
import { openSection, showOperation, showSection, factList, askTask, showTask, goToTask, showRun, showKeys } from './panel.js';
import { pickState, highlightMatches, findMatch, highlightName } from './search.js';
import { loadNotes, showNotes } from './notes.js';
import { showType } from './type_panel.js';
import { showSource } from './source_pane.js';
import { showRange, saveSlice } from './selection.js';
import { addressOf, askForToken, writeAddress, readAddress, copyLink } from './address.js';
import { makeToolbar } from './toolbar.js';
import { hoverSection, hoverWords, hideTip, showTip } from './tips.js';

/** Height of the legend of one view's values, pixels. */
const VALUES_LINE = 27;
/** Windows narrower than this have less room for names of rows, pixels. */
const NARROW = 700;
const NARROW_GUTTER = 92;

/** Flags of marks, by the names in the legend. @type {{[name: string]: number}} */
const MARKS = { lost: LOST, uncertain: UNCERTAIN, long: LONG_WAIT, finding: FINDING, off: OFF_CPU };

export class Viewer {
  /** Fields that are written in. @type {HTMLInputElement} */
  search;

  /** @type {HTMLInputElement} */
  only;

  /** Lists of choices. @type {HTMLSelectElement} */
  view;

  /** @type {HTMLSelectElement} */
  second;

  /** @type {HTMLSelectElement} */
  order;

  /** @type {HTMLSelectElement} */
  tall;

  /** Buttons that stay pressed. @type {HTMLElement} */
  where;

  /** @type {HTMLElement} */
  flowsButton;

  /** Parts of the toolbar that are written by others. @type {HTMLElement} */
  chips;

  /** @type {HTMLElement} */
  status;

  /** @type {HTMLElement} */
  matches;

  /** Timers: of the pointer that rests, of a selection, of the address. @type {ReturnType<typeof setTimeout> | undefined} */
  resting;

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  ranging;

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  remembering;

  /** How far a view is, as said last. */
  progress = '';

  /** The newest question of the pointer. */
  hovers = 0;

  /** The newest choice of what is highlighted. */
  highlights = 0;

  /** The address that was written last, the height to which it scrolls, and whether it names views that are not known yet. */
  written = '';

  /** @type {number | undefined} */
  wantedY;

  unknownViews = false;

  /** The last search and its totals. */
  searched = '';

  /** @type {any} */
  totals;

  /** All notes beside the trace, and why they could not be read. @type {import('./notes.js').Note[]} */
  notes = [];

  notesProblem = '';

  /** For the console and for tests: the last match, section under the pointer, task, task type, range and report of a part. @type {any} */
  found;

  /** @type {any} */
  hovered;

  /** @type {any} */
  task;

  /** The task type that is shown. @type {any} */
  type;

  /** @type {any} */
  range;

  /** @type {any} */
  part;

  /**
   * @param {HTMLElement} page
   * @param {ServerSource} source
   * @param {any} overview
   */
  constructor(page, source, overview) {
    this.source = source;
    this.overview = overview;
    this.formatTime = formatTime;
    this.report = overview.report;
    const { devices } = overview;
    /** What instrumented threads or tasks can show: of whom, in which behaviours. */
    this.shown = { what: [], per: [], behaviours: [] };
    this.names = new Map(overview.tracks.map((track) => [track.track, track]));
    this.dark = matchMedia('(prefers-color-scheme: dark)').matches;
    this.theme = makeTheme(this.dark, overview.states);
    this.panel = element('aside', { id: 'panel', 'aria-label': 'Details', tabindex: 0 });
    this.tip = element('div', { id: 'tip', role: 'status' });
    this.live = element('p', { id: 'live', 'aria-live': 'polite', class: 'hidden' });
    this.host = element('div', { id: 'timeline-host' });
    this.mapHost = element('div', { class: 'map' });
    this.legendHost = element('div', { class: 'legends' });
    this.valuesHost = element('div', { class: 'values' });
    this.statesHost = element('div', {});
    page.replaceChildren(element('div', { class: 'viewer' }, this.toolbar(), element('div', { class: 'split' }, element('div', { id: 'picture' }, this.mapHost, this.host), this.panel), this.legendHost, this.tip, this.live));
    document.body.classList.add('viewing');
    this.timeline = new TimelineView(this.host, overview, source, {
      onHover: (row, at, x, y) => this.hover(row, at, x, y), onLeave: () => this.leave(),
      onWords: (row, found, x, y) => this.hoverWords(row, found, x, y),
      onNote: (note, x, y, isPressed) => { if (isPressed) showNotes(this, note.id); else { hideTip(this); this.showTip([note.text], x, y); } },
      onSection: (row, at) => this.open(row, at), onType: (slot, question) => showType(this, slot, question), onSelect: (range) => this.showRange(range),
      onChange: () => { this.remember(); this.askFlows(); }, onDrawn: () => { this.minimap?.draw(); this.drawValues(); }, onSay: (text) => { this.live.textContent = text; },
    });
    if (window.innerWidth < NARROW) this.timeline.gutter = NARROW_GUTTER;
    if (overview.tracks.some((track) => track.worker) || devices.rows.length || overview.samples.length) {
      this.minimap = new Minimap(this.timeline);
      this.mapHost.append(this.minimap.canvas);
    }
    this.timeline.setViews(viewsAtFirst(overview, this.report));
    this.drawLegend();
    this.showRun();
    /** Whether no link says what to show. */
    this.opensPlainly = location.hash.length < 2;
    this.restore();
    this.models = this.loadModels();
    this.nested = loadNested(this);
    this.noted = loadNotes(this);
    // Names of values may be known only when a view was played. An older answer must not follow a newer one.
    source.onView = (view) => {
      if (this.overview.views.find((row) => row.name === view)?.isOfModel) this.models = this.models.then(() => this.loadModels());
    };
    setInterval(() => this.tellProgress(), 400);
    window.addEventListener('hashchange', () => { if (location.hash !== this.written) this.restore(); });
    document.addEventListener('keydown', (event) => this.key(event));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => this.followSystem(event.matches));
    onPaper(() => {
      this.focused = document.activeElement;
      this.paint(false);
      this.host.replaceChildren(this.timeline.pictureInSight());
    }, () => {
      this.host.replaceChildren(this.timeline.canvas);
      this.paint(this.dark);
      /** @type {HTMLElement | null} */ (this.focused)?.focus();
    });
  }

  toolbar() { return makeToolbar(this); }

  /** Fills the lists of views: those of threads, then each family of the models' views. */
  fillViews() { fillViews(this); }

  /** Shows these views one below the other, each once. @param {string[]} names */
  setViews(names) { setViews(this, names); }

  /** A view of what instrumented threads or tasks show, listed from now on; null for any other name. @param {string} name */
  shownView(name) { return shownView(this, name); }

  /** Asks for the rows of chosen views that the server must play first. */
  loadShown() { return loadShown(this); }

  showChosen() { showChosen(this); }

  /** Asks which views the models of the trace have, and adds them to the lists. */
  loadModels() { return loadModels(this); }

  /** Says how far a view is that must be computed first. */
  async tellProgress() {
    const { playing } = this.source.busy ? await this.source.json('progress').catch(() => ({ playing: null })) : { playing: null };
    const words = playing === null || !this.source.busy ? '' : `playing the trace: ${(playing * 100).toFixed(0)} %`;
    // What others say there stays.
    if (words || this.status.textContent === this.progress) this.status.textContent = words;
    this.progress = words;
  }

  drawLegend() {
    const occurs = new Set(this.report.thread_states.flatMap((row) => Object.keys(row.states)));
    // As tall as it may become, so that rows do not move when something comes into sight.
    this.statesHost.style.minHeight = '';
    this.statesHost.replaceChildren(legend(this.overview.states, (name) => occurs.has(name), this.theme, undefined, () => {}));
    this.legendHost.replaceChildren(this.statesHost, this.valuesHost);
    this.statesHost.style.minHeight = `${this.statesHost.offsetHeight}px`;
    // Their room does not depend on what is in sight, which depends on their room; nor do rows move under the pointer.
    const named = this.timeline.views.filter((view) => this.timeline.coloursOf(view));
    this.valuesHost.style.height = `${named.length * VALUES_LINE}px`;
    this.drawValues();
  }

  /** Highlights a state, or nothing where it is highlighted. @param {string} name */
  pickState(name) { pickState(this, name); }

  /** Legends of the values in sight: they change with what is shown, but not as often as that. */
  drawValues() {
    if (this.valuing) return;
    this.valuing = setTimeout(() => {
      this.valuing = undefined;
      const chosen = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.valueName;
      this.valuesHost.replaceChildren(...this.timeline.valueLegends((label) => this.highlightName(label)));
      if (chosen !== undefined) [...this.valuesHost.querySelectorAll('button')].find((button) => button.dataset.valueName === chosen)?.focus();
      const { statesInSight, flagsInSight } = this.timeline;
      const isSeen = new Set(this.overview.states.filter((_, number) => statesInSight[number] > 0).map(({ name }) => name));
      const picked = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.state;
      this.statesHost.replaceChildren(legend(this.overview.states, (name) => isSeen.has(name), this.theme, (mark) => (flagsInSight & MARKS[mark]) !== 0, (name) => this.pickState(name)));
      // What has the focus is made again.
      if (picked) /** @type {HTMLElement | null} */ (this.statesHost.querySelector(`[data-state="${picked}"]`))?.focus();
    }, 150);
  }

  toggleTheme() {
    this.dark = !this.dark;
    document.documentElement.dataset.theme = this.dark ? 'dark' : 'light';
    this.paint(this.dark);
  }

  /** Follows the colours of the system, unless the reader chose. @param {boolean} dark */
  followSystem(dark) {
    if (document.documentElement.dataset.theme) return;
    this.dark = dark;
    this.paint(dark);
  }

  /** Draws everything in this theme, at once. @param {boolean} dark */
  paint(dark) {
    this.theme = makeTheme(dark, this.overview.states);
    this.timeline.setTheme(dark);
    this.drawLegend();
  }

  /** @param {number} track */
  trackName(track) {
    const row = this.names.get(track);
    return row ? trackLabel(row) : `track ${track}`;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = /** @type {Element} */ (event.target);
    const typing = at instanceof HTMLInputElement || at instanceof HTMLTextAreaElement || at instanceof HTMLSelectElement;
    if (typing || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/') { this.search.focus(); this.search.select(); event.preventDefault(); }
    else if (event.key === 'n') { this.find('next'); event.preventDefault(); }
    else if (event.key === 'N') { this.find('previous'); event.preventDefault(); }
    else if (event.key === 'h') this.highlight(this.source.filter ? '' : this.search.value.trim());
    else if (event.key === 'e') this.toggleFlows();
    else if (event.key === 'p') this.timeline.toggleTop();
    else if (event.key === 'c') this.showSource();
    else if (event.key === 'b') { this.showNotes(); event.preventDefault(); }
    else if (event.key === '?') this.showKeys();
    // The timeline's keys work from everywhere, but for those with which a button is pressed or the panel scrolls.
    else if (!at.closest('#panel') && !(at instanceof HTMLButtonElement && [' ', 'Enter'].includes(event.key))) this.timeline.key(event);
  }

  /** Shows pale what does not match, everything again for no text. @param {string} text */
  highlight(text) { return highlightMatches(this, text); }

  /** Tells why something does not work. @param {unknown} error */
  say(error) {
    const text = error instanceof Error ? error.message : String(error);
    this.live.textContent = text;
    this.panel.replaceChildren(element('p', { id: 'problem', class: 'warn' }, fitText(text, 600)));
  }

  /** @param {import('./rows.js').Row} row @param {number} at @param {number} x @param {number} y */
  hover(row, at, x, y) { hoverSection(this, row, at, x, y); }

  /** @param {import('./rows.js').Row} row @param {{words: string, start: number, end: number}} found @param {number} x @param {number} y */
  hoverWords(row, { words, start, end }, x, y) { hoverWords(this, row, { words, start, end }, x, y); }

  leave() { hideTip(this); }

  /** Begins another content of the panel. A late answer must not replace a newer one. @returns {() => boolean} whether it is the newest still */
  turnPanel() {
    const turn = this.turn = (this.turn || 0) + 1;
    return () => turn === this.turn;
  }

  /** @param {import('./rows.js').Row} row @param {number} at */
  open(row, at) { return openSection(this, row, at); }

  /** @param {any} found */
  showOperation(found) { showOperation(this, found); }

  /** @param {any} found @param {() => boolean} isNewest */
  showSection(found, isNewest) { return showSection(this, found, isNewest); }

  facts(rows) { return factList(this, rows); }

  /** What is known of a task. @param {import('./source.js').TaskRef} ref */
  askTask(ref) { return askTask(this, ref); }

  /** @param {import('./source.js').TaskRef} ref @param {boolean} alone @param {() => boolean} isNewest */
  showTask(ref, alone = true, isNewest = this.turnPanel()) { return showTask(this, ref, alone, isNewest); }

  /** @param {string[]} lines @param {number} x @param {number} y */
  showTip(lines, x, y) { showTip(this, lines, x, y); }

  /** The source of the opened section, else the file with most time. */
  showSource() { return showSource(this); }

  /** The panel of notes. */
  showNotes() { showNotes(this); }

  /** Draws the arrows of the visible part, or takes them away. */
  toggleFlows() {
    this.showsFlows = !this.showsFlows;
    this.flowsButton.setAttribute('aria-pressed', String(this.showsFlows));
    this.timeline.flows = [];
    this.status.textContent = '';
    this.timeline.redraw();
    this.askFlows();
  }

  /** Asks for the arrows of the visible part, a little after it stopped moving. */
  askFlows() {
    clearTimeout(this.flowing);
    if (!this.showsFlows) return;
    this.flowing = setTimeout(async () => {
      const { from, span } = this.timeline;
      const answer = await this.source.json('flows', { from: Math.floor(from), to: Math.ceil(from + span) }).catch(() => null);
      // Another part has its own question.
      if (!answer || !this.showsFlows || this.timeline.from !== from || this.timeline.span !== span) return;
      this.timeline.flows = answer.flows.map((flow) => ({ kind: flow.kind, fromTrack: flow.from_track, from: flow.from, toTrack: flow.to_track, to: flow.to, critical: false, ...(flow.kind === 'submission' ? { toView: 'devices' } : {}) }));
      this.timeline.redraw();
      this.live.textContent = `${formatCount(answer.flows.length)} arrows${answer.left_out ? `, ${formatCount(answer.left_out)} more are not drawn: zoom in` : ''}`;
      this.status.textContent = answer.left_out ? this.live.textContent : '';
    }, 120);
  }

  /** @param {import('./source.js').TaskRef} ref */
  goToTask(ref) { return goToTask(this, ref); }

  /** @param {'next' | 'previous'} step */
  find(step) { return findMatch(this, step); }

  /** @param {{from: number, to: number} | null} range */
  showRange(range) { showRange(this, range); }

  /** Dims what is not of this place or type; the same name again ends that. @param {string} name */
  highlightName(name) { return highlightName(this, name); }

  /** Saves a range as a trace of its own. @param {{from: number, to: number}} range */
  slice(range) { return saveSlice(this, range); }

  showRun() { showRun(this); }

  showKeys() { showKeys(this); }

  async png() {
    const blob = await timelinePng(this.timeline);
    if (blob) saveFile('timeline.png', blob);
  }

  svg() {
    saveFile('timeline.svg', new Blob([timelineSvg(this.timeline)], { type: 'image/svg+xml' }));
  }

  /** Writes what is shown into the address, so that it can be sent to somebody. */
  remember() { writeAddress(this); }

  /** The part of the address that names what is shown. */
  address() { return addressOf(this); }

  /** Shows what the address says. */
  restore() { readAddress(this); }

  copyLink() { return copyLink(this); }
}

/**
 * Asks the server for the run and fills the page with it; null where the server was started again and the page has no token for it.
 * @param {HTMLElement} page
 * @returns {Promise<Viewer | null>}
 */
export async function showViewer(page) {
  const opened = await ServerSource.open('api');
  if (opened) return new Viewer(page, opened.source, opened.overview);
  askForToken(page);
  return null;
}
