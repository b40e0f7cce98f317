// The viewer: the timeline over the whole window, with search, tables of a range, and tasks.

import { NAME, codeText, element, bar, nameOf } from './elements.js';
import { formatCount, formatNumberOf, formatPercent, formatStart, formatTime, fitText, shellWord, unitOf } from './format.js';
import { legend } from './charts.js';
import { makeTheme } from './palette.js';
import { FINDING, LONG_WAIT, LOST, OFF_CPU, UNCERTAIN } from './pixels.js';
import { ServerSource } from './source.js';
import { TimelineView } from './timeline.js';
import { Minimap } from './minimap.js';
import { placeOf, trackLabel } from './rows.js';
import { saveFile } from './files.js';
import { timelinePng, timelineSvg } from './picture.js';
import { findings, isLarge, ownerOf } from './findings.js';
import { callPaths, efficiencyTree } from './report.js';
import { remarksOfQueues, tables } from './report_tables.js';
import { table } from './table.js';
import { onPaper } from './paper.js';
import { communicationMatrix } from './matrix.js';
import { blameLines, edgesOfSection, edgesOfTask, freeWords, messageLines, operationFacts, remarkLines, shortLines, shortName, sectionTitle, valueWords } from './details.js';

/** Height of the legend of one view's values, pixels. */
const VALUES_LINE = 27;
/** Windows narrower than this have less room for names of rows, pixels. */
const NARROW = 700;
const NARROW_GUTTER = 92;
/** How long the pointer rests before its section is asked for. */
const REST_MS = 40;

/** Flags of marks, by the names in the legend. @type {{[name: string]: number}} */
const MARKS = { lost: LOST, uncertain: UNCERTAIN, long: LONG_WAIT, finding: FINDING, off: OFF_CPU };

class Viewer {
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
      onSection: (row, at) => this.open(row, at), onSelect: (range) => this.showRange(range),
      onChange: () => { this.remember(); this.askFlows(); }, onDrawn: () => { this.minimap?.draw(); this.drawValues(); }, onSay: (text) => { this.live.textContent = text; },
    });
    if (window.innerWidth < NARROW) this.timeline.gutter = NARROW_GUTTER;
    if (overview.tracks.some((track) => track.worker)) {
      this.minimap = new Minimap(this.timeline);
      this.mapHost.append(this.minimap.canvas);
    }
    if (devices.rows.length) this.timeline.setViews(['state', 'devices']);
    this.drawLegend();
    this.showRun();
    this.restore();
    this.models = this.loadModels();
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

  toolbar() {
    const button = (id, label, title, onclick) => element('button', { type: 'button', id, title, onclick }, label);
    this.search = /** @type {HTMLInputElement} */ (element('input', { id: 'search', type: 'search', placeholder: 'gemm, task 12, duration>1ms', title: 'a word of a state, task type or place; task 12; or a filter: state=barrier and duration>1ms', 'aria-label': 'Search', size: 30, maxlength: 400 }));
    this.search.addEventListener('input', () => { this.matches.textContent = ''; });
    this.search.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.find(event.shiftKey ? 'previous' : 'next');
      // The browser would empty the field, and the next match would be one of nothing.
      if (event.key === 'Escape') { this.timeline.canvas.focus(); event.preventDefault(); }
    });
    this.view = /** @type {HTMLSelectElement} */ (element('select', { id: 'view', 'aria-label': 'View', title: 'view of the first rows', onchange: () => this.setViews([this.view.value, ...this.timeline.views.slice(1)]) }));
    this.second = /** @type {HTMLSelectElement} */ (element('select', { id: 'second', 'aria-label': 'Add a view', title: 'a further view below, aligned in time',
      onchange: () => { if (this.second.value) this.setViews([...this.timeline.views, this.second.value]); } }));
    this.tall = /** @type {HTMLSelectElement} */ (element('select', { id: 'tall', 'aria-label': 'Height of rows', title: 'height of rows', onchange: () => this.timeline.setRowMode(this.tall.value) },
      ...[['fit', 'fit all rows'], ['compact', 'compact rows'], ['normal', 'normal rows'], ['tall', 'tall rows']].map(([value, label]) => element('option', { value }, label))));
    this.only = /** @type {HTMLInputElement} */ (element('input', { id: 'only', type: 'search', placeholder: 'rows', title: 'show rows whose names have these words', 'aria-label': 'Filter rows', size: 8, maxlength: 200, oninput: () => this.timeline.chooseRows(this.only.value) }));
    this.only.addEventListener('keydown', (event) => { if (event.key === 'Enter') this.timeline.canvas.focus(); });
    this.chips = element('span', { id: 'chips' });
    this.status = element('span', { id: 'status', role: 'status' });
    this.matches = element('span', { id: 'matches', role: 'status' });
    this.fillViews();
    this.where = button('where', 'highlight', 'dim rows that do not match the search (h)', () => this.highlight(this.source.filter === this.search.value.trim() ? '' : this.search.value.trim()));
    this.where.setAttribute('aria-pressed', 'false');
    this.flowsButton = button('flows', 'flows', 'arrows of the visible part: dependences, creation, messages, wakes, submissions (e)', () => this.toggleFlows());
    this.flowsButton.setAttribute('aria-pressed', 'false');
    return element('div', { class: 'toolbar', role: 'toolbar', 'aria-label': 'Viewer' },
      element('strong', {}, 'taskscope'), this.view, this.second, this.chips,
      button('in', '+', 'zoom in (+)', () => this.timeline.zoom(0.5)), button('out', '−', 'zoom out (−)', () => this.timeline.zoom(2)),
      button('all', 'all', 'the whole run (Home)', () => this.timeline.show(0, this.overview.length_ns)), this.tall, this.only, button('top', 'top', 'put the row with the focus on top, or back (p)', () => this.timeline.toggleTop()),
      this.search, button('previous', '◂', 'previous match (shift+n)', () => this.find('previous')), button('next', '▸', 'next match (n)', () => this.find('next')), this.matches,
      this.where, this.flowsButton, button('png', 'PNG', 'save the visible part as PNG', () => this.png()), button('svg', 'SVG', 'save the visible part as SVG', () => this.svg()),
      button('slice-view', 'slice', 'save the visible time as a trace', () => this.slice({ from: Math.floor(this.timeline.from), to: Math.ceil(this.timeline.from + this.timeline.span) })), button('link', 'link', 'copy the address of this view', () => this.copyLink()), button('theme', 'light/dark', 'light or dark', () => this.toggleTheme()),
      button('run', 'run', 'the run and its findings', () => this.showRun()), button('keys', '?', 'keys', () => this.showKeys()), this.status);
  }

  /** Fills the lists of views: those of threads, then each family of the models' views. */
  fillViews() {
    const options = () => {
      const groups = new Map();
      for (const row of this.overview.views) {
        const family = row.family || 'threads: states, tasks, places';
        if (!groups.has(family)) groups.set(family, []);
        groups.get(family).push(element('option', { value: row.name }, fitText(row.label, 60)));
      }
      return [...groups].map(([family, rows]) => element('optgroup', { label: family }, ...rows));
    };
    this.view.replaceChildren(...options());
    this.second.replaceChildren(element('option', { value: '' }, 'add a view below'), ...options());
    if (this.timeline) this.showChosen();
  }

  /** Shows these views one below the other, each once. @param {string[]} names */
  setViews(names) {
    const shown = names.filter((name) => this.shownView(name));
    this.timeline.setViews([...new Set(names)]);
    if (shown.length) this.fillViews();
    this.showChosen();
    this.drawLegend();
    this.loadShown();
  }

  /** A view of what instrumented threads or tasks show, listed from now on; null for any other name. @param {string} name */
  shownView(name) {
    const [, per, behaviour, what] = /^shown\.([a-z]+)\.([a-z-]+)\.(.+)$/.exec(name) || [];
    const known = this.shown.what.find((row) => row.name === what);
    if (!known || !this.shown.per.includes(per) || !this.shown.behaviours.includes(behaviour)) return null;
    let view = this.overview.views.find((row) => row.name === name);
    if (!view) {
      view = { name, label: `${known.label} per ${per}, ${behaviour}`, family: 'instrumentation', rows: [], values: [], isAsked: false, shown: { per, behaviour, what } };
      this.overview.views.push(view);
    }
    return view;
  }

  /** Asks for the rows of chosen views that the server must play first. */
  async loadShown() {
    for (const name of this.timeline.views) {
      const view = this.shownView(name);
      if (!view || view.isAsked) continue;
      view.isAsked = true;
      try {
        const { rows, values, tasks_left_out: left, is_cut: isCut } = await this.source.played('shown', { view: name });
        Object.assign(view, { rows, values });
        if (!rows.length) view.label += ': nothing';
        if (left) view.label += ` (\`dump --shown task\` has ${formatCount(left)} more tasks, which ran shorter)`;
        if (isCut) view.label += ' (stacks are deeper than shown)';
      } catch (error) {
        view.isAsked = false;
        this.say(error);
        return;
      }
      this.timeline.layout();
      this.timeline.scroll(this.wantedY === undefined ? 0 : this.wantedY - this.timeline.scrollY);
      this.drawLegend();
    }
    this.wantedY = undefined;
  }

  showChosen() {
    const { views } = this.timeline;
    this.view.value = views[0];
    this.second.value = '';
    const labels = new Map(this.overview.views.map((row) => [row.name, row.label]));
    const chip = (name) => element('button', {
      type: 'button', class: 'chip', title: `remove this view: ${fitText(labels.get(name) || name, 100)}`, onclick: () => this.setViews(this.timeline.views.filter((other) => other !== name)),
    }, `${fitText((labels.get(name) || name).replace(/ of the (ACTIVE|RUNNING) thread$/, ''), 28)} ×`); // how most views of models end
    this.chips.replaceChildren(...views.flatMap((name, at) => [...(at ? [chip(name)] : []), ...this.choicesOf(name)]));
  }

  /** Lists that choose whose a view is, and in which behaviour. @param {string} name */
  choicesOf(name) {
    const { shown } = this.overview.views.find((row) => row.name === name) || {};
    if (!shown) return [];
    const choose = (kind, label, names) => {
      const list = /** @type {HTMLSelectElement} */ (element('select', { class: kind, 'aria-label': label, title: label, onchange: () => {
        const { per, behaviour, what } = /** @type {any} */ ({ ...shown, [kind]: list.value });
        this.setViews(this.timeline.views.map((other) => (other === name ? `shown.${per}.${behaviour}.${what}` : other)));
      } }, ...names.map((other) => element('option', { value: other }, kind === 'per' ? `per ${other}` : other))));
      list.value = shown[kind];
      return list;
    };
    return [choose('per', 'per thread, or per task in its own time', this.shown.per),
      choose('behaviour', 'the part of a task that is shown when a thread resumes it', this.shown.behaviours)];
  }

  /** Asks which views the models of the trace have, and adds them to the lists. */
  async loadModels() {
    if (!this.overview.task_types) {
      this.overview.task_types = await this.source.json('type_names').catch(() => []);
      // The view of task types has the colours of the rows of task types.
      const types = this.overview.views.find((row) => row.name === 'type');
      if (types) types.values = this.overview.task_types.map((label, slot) => [slot + 1, label]);
      this.timeline.layout();
      this.timeline.redraw();
    }
    const { families } = await this.source.json('models').catch(() => ({ families: [] }));
    const known = new Map(this.overview.views.map((row) => [row.name, row]));
    for (const family of families) {
      for (const type of family.types) {
        const row = { name: type.name, label: `${family.label}: ${type.title}`, family: `${family.label}: views of models`, rows: family.rows, values: type.values, isOfModel: true };
        const old = known.get(type.name);
        if (old) Object.assign(old, row);
        else this.overview.views.push(row);
      }
    }
    if (!this.shown.what.length) this.shown = await this.source.json('shown').catch(() => this.shown);
    for (const { name } of this.shown.what) this.shownView(`shown.thread.stacked.${name}`);
    this.fillViews();
    if (this.unknownViews) {
      this.restore();
      this.unknownViews = false;
    }
    this.timeline.redraw();
    this.drawLegend();
  }

  /** Says how far a view is that must be computed first. */
  async tellProgress() {
    if (!this.source.busy) {
      if (this.status.textContent) this.status.textContent = '';
      return;
    }
    const { playing } = await this.source.json('progress').catch(() => ({ playing: null }));
    if (this.source.busy) this.status.textContent = playing === null ? '' : `playing the trace: ${(playing * 100).toFixed(0)} %`;
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
  pickState(name) {
    const text = `state=${name}`;
    const isOn = this.source.filter === text;
    this.search.value = isOn ? '' : text;
    this.highlight(isOn ? '' : text);
  }

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
    const typing = at instanceof HTMLInputElement || at instanceof HTMLSelectElement;
    if (typing || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/') { this.search.focus(); this.search.select(); event.preventDefault(); }
    else if (event.key === 'n') { this.find('next'); event.preventDefault(); }
    else if (event.key === 'N') { this.find('previous'); event.preventDefault(); }
    else if (event.key === 'h') this.highlight(this.source.filter ? '' : this.search.value.trim());
    else if (event.key === 'e') this.toggleFlows();
    else if (event.key === 'p') this.timeline.toggleTop();
    else if (event.key === '?') this.showKeys();
    // The timeline's keys work from everywhere, but for those with which a button is pressed or the panel scrolls.
    else if (!at.closest('#panel') && !(at instanceof HTMLButtonElement && [' ', 'Enter'].includes(event.key))) this.timeline.key(event);
  }

  /** Shows pale what does not match, everything again for no text. @param {string} text */
  async highlight(text) {
    try {
      if (text) await this.source.json('filter', { where: text });
    } catch (error) {
      this.say(error);
      return;
    }
    this.source.filter = text;
    this.source.forget();
    this.where.setAttribute('aria-pressed', String(Boolean(text)));
    this.timeline.changed();
  }

  /** Tells why something does not work. @param {unknown} error */
  say(error) {
    const text = error instanceof Error ? error.message : String(error);
    this.live.textContent = text;
    this.panel.replaceChildren(element('p', { id: 'problem', class: 'warn' }, fitText(text, 600)));
  }

  /** @param {import('./rows.js').Row} row @param {number} at @param {number} x @param {number} y */
  hover(row, at, x, y) {
    clearTimeout(this.resting);
    this.resting = setTimeout(async () => {
      const number = (this.hovers = (this.hovers || 0) + 1);
      const found = await this.source.json('section', { ...placeOf(row), at }).catch(() => null);
      if (number !== this.hovers || !found) { if (!found) this.leave(); return; }
      const lines = shortLines(found, row.label, (track) => this.trackName(track));
      if (found.view && typeof row.thread === 'number') {
        // A thread's row of a model's view: what the thread was in tells the line and the culprit.
        const section = await this.source.json('section', { track: row.thread, at }).catch(() => null);
        if (number !== this.hovers) return;
        if (section) lines.push(...shortLines(section, this.trackName(row.thread), (track) => this.trackName(track)));
      }
      this.hovered = found;
      this.showTip(lines, x, y);
    }, REST_MS);
  }

  /** @param {import('./rows.js').Row} row @param {{words: string, start: number, end: number}} found @param {number} x @param {number} y */
  hoverWords(row, { words, start, end }, x, y) {
    this.leave();
    this.showTip([row.label, words, `in ${formatTime(end - start)} from ${formatStart(start, end - start)} on`], x, y);
  }

  /** @param {string[]} lines @param {number} x @param {number} y */
  showTip(lines, x, y) {
    this.tip.replaceChildren(...lines.map((line) => element('div', {}, line)));
    const box = this.host.getBoundingClientRect();
    this.tip.style.display = 'block';
    this.tip.style.left = `${Math.min(box.left + x + 14, window.innerWidth - this.tip.offsetWidth - 8)}px`;
    this.tip.style.top = `${Math.min(box.top + y + 16, window.innerHeight - this.tip.offsetHeight - 8)}px`;
  }

  leave() {
    clearTimeout(this.resting);
    this.hovers = (this.hovers || 0) + 1;
    this.tip.style.display = 'none';
  }

  /** Begins another content of the panel. A late answer must not replace a newer one. @returns {() => boolean} whether it is the newest still */
  turnPanel() {
    const turn = this.turn = (this.turn || 0) + 1;
    return () => turn === this.turn;
  }

  /** @param {import('./rows.js').Row} row @param {number} at */
  async open(row, at) {
    const isNewest = this.turnPanel();
    const found = await this.source.json('section', { ...placeOf(row), at });
    if (!isNewest()) return;
    if (!found) {
      this.tellNothing(row, at);
      return;
    }
    this.timeline.marked = found;
    this.timeline.edges = [];
    this.timeline.redraw();
    if (found.view === 'devices') this.showOperation(found);
    else if (found.view) await this.showValue(found, row, at, isNewest);
    else await this.showSection(found, isNewest);
  }

  /** Says that a row has nothing at a time. @param {import('./rows.js').Row} row @param {number} at */
  tellNothing(row, at) {
    const words = `${row.label}: nothing at ${formatStart(at, this.timeline.nsPerPixel * 100)}${row.foreign ? '' : ' (not started, or ended)'}`;
    this.live.textContent = words;
    this.panel.replaceChildren(element('p', { id: 'nothing' }, words));
  }

  /** @param {any} found */
  showOperation(found) {
    const submitter = found.submitter === null ? String(found.thread || '–') : this.trackName(found.submitter);
    this.panel.replaceChildren(element('h2', { id: 'section-title' }, fitText(found.label, 120)),
      this.facts([['kind', found.kind], ['from', formatStart(found.start, found.end - found.start)], ['lasts', formatTime(found.end - found.start)], ['submitted by', submitter],
        ['submitted at', found.submitted === null ? '–' : formatStart(found.submitted, found.end - found.start)], ...operationFacts(found)]),
      element('button', { type: 'button', onclick: () => this.timeline.select(found.start, found.end) }, 'select its time'));
    if (found.submitter !== null && found.submitted !== null) {
      this.timeline.edges = [{ kind: 'creator', fromTrack: found.submitter, from: found.submitted, toView: 'devices', toTrack: found.track, to: found.start, critical: false }];
      this.timeline.redraw();
    }
    this.live.textContent = fitText(`${found.kind} ${found.label}, ${formatTime(found.end - found.start)}`, 300);
  }

  /** @param {any} found @param {import('./rows.js').Row} row @param {number} at @param {() => boolean} isNewest */
  async showValue(found, row, at, isNewest) {
    const section = typeof row.thread === 'number' ? await this.source.json('section', { track: row.thread, at }) : null;
    if (!isNewest()) return;
    if (section) await this.showSection(section, isNewest);
    else this.panel.replaceChildren();
    if (!isNewest()) return;
    this.panel.prepend(element('h2', { id: 'value-title' }, found.title),
      this.facts([['value', nameOf(valueWords(found))], ['row', row.label], ['from', formatStart(found.start, found.end - found.start)], ['lasts', formatTime(found.end - found.start)]]));
    this.live.textContent = `${found.title}: ${valueWords(found)}, ${formatTime(found.end - found.start)}`;
  }

  /** @param {any} found @param {() => boolean} isNewest */
  async showSection(found, isNewest) {
    const [lasts, name] = [found.end - found.start, (track) => this.trackName(track)];
    const facts = [['state', found.label], ['where', nameOf(found.place)], ...(found.line && !found.place.includes(found.line) ? [['line', nameOf(found.line)]] : []), ['thread', name(found.track)], ['from', formatStart(found.start, lasts)], ['lasts', formatTime(lasts)],
      ...(found.call_bytes ? [['bytes', formatCount(found.call_bytes)]] : []), ...(found.region_name ? [['region', found.region_name]] : [])];
    const list = (words) => (words.length ? element('ul', {}, ...words.map((line) => element('li', {}, line))) : '');
    const messages = messageLines(found, name);
    const select = element('button', { type: 'button', onclick: () => this.timeline.select(found.start, found.end) }, 'select its time (m)');
    this.panel.replaceChildren(element('h2', { id: 'section-title' }, fitText(sectionTitle(found), 120)), this.facts(facts),
      list([...blameLines(found, name), ...remarkLines(found)]), messages.length ? element('div', { id: 'messages' }, element('h3', {}, 'Messages'), list(messages)) : '', select);
    this.timeline.edges = edgesOfSection(found);
    this.timeline.redraw();
    if (found.task_ref) await this.showTask(found.task_ref, false, isNewest);
    if (!isNewest()) return;
    this.live.textContent = fitText(`${found.label}${found.place ? ` ${found.place}` : ''}, ${formatTime(found.end - found.start)}`, 300);
  }

  facts(rows) {
    return element('dl', { class: 'facts' }, ...rows.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
  }

  /** What is known of a task. @param {import('./source.js').TaskRef} ref */
  async askTask(ref) {
    const query = { task: ref.number, pid: ref.pid, at: ref.at };
    return this.source.json('task', Object.fromEntries(Object.entries(query).filter(([, value]) => value !== null)));
  }

  /** @param {import('./source.js').TaskRef} ref @param {boolean} alone @param {() => boolean} isNewest */
  async showTask(ref, alone = true, isNewest = this.turnPanel()) {
    const task = await this.askTask(ref);
    if (!isNewest()) return;
    this.task = task;
    const lasts = task.ended !== null && task.began !== null ? task.ended - task.began : 100;
    const time = (ns) => (ns === null ? 'not known' : formatStart(ns, lasts));
    const go = (other, label = '') => element('button', { type: 'button', class: 'link', onclick: () => this.goToTask(other) }, fitText(`${other.name}${label}`, 90));
    const list = (title, edges, count) => (count === 0 ? null : element('div', {}, element('h4', {}, `${title}: ${formatCount(count)}`),
      element('ul', {}, ...edges.slice(0, 12).map((edge) => element('li', {}, go(edge.task_ref), ` ${fitText(edge.type, 60)}, at ${edge.address}`)))));
    const critical = task.critical_predecessor;
    const made = element('div', { class: 'task', id: 'task' }, alone ? element('h2', {}, fitText(`${shortName(task.type)}, ${task.task_ref.name}`, 120)) : element('h3', {}, fitText(task.task_ref.name, 70)),
      this.facts([['type', fitText(task.type, 100)], ...(task.line && !task.type.includes(task.line) ? [['line', task.line]] : []), ...(task.status === 'ended' ? [] : [['status', task.status]]),
        ...(task.parent_ref === null ? [] : [['parent', go(task.parent_ref)]])]),
      element('h3', {}, 'Why then?'), this.stepsOfTask(task, time, critical ? go(critical.task_ref, ` ${shortName(critical.type)}`) : null),
      task.others_count === 0 ? null : element('div', {}, element('h4', {}, `others of this number: ${formatCount(task.others_count)}`),
        element('ul', {}, ...task.others.slice(0, 12).map((other) => element('li', {}, go(other), other.at === null ? '' : `, ${task.created === null ? 'from' : 'created at'} ${formatStart(other.at, lasts)}`)))),
      list('depends on', task.predecessors, task.predecessors_count), list('others depend on it', task.successors, task.successors_count));
    if (alone) {
      this.panel.replaceChildren(made);
      this.timeline.edges = [];
    } else this.panel.append(made);
    this.timeline.edges = [...this.timeline.edges, ...edgesOfTask(task)];
    this.timeline.redraw();
  }

  /**
   * A task from its creation to its end, each step with its length.
   * @param {any} task
   * @param {(ns: number | null) => string} time
   * @param {HTMLElement | null} critical the predecessor that ended last
   */
  stepsOfTask(task, time, critical) {
    const { created, began, ended, start } = task;
    const name = (track) => this.trackName(track);
    const span = (from, to) => (from === null || to === null ? '' : formatTime(to - from));
    /** @type {[string, string, (Node | string)[]][]} */
    const rows = [['created', time(created), task.creator === null ? [] : [`by ${name(task.creator)}${task.created_in ? `, in ${fitText(task.created_in, 60)}` : ''}`]]];
    if (start) {
      if (start.is_released && critical) rows.push(['waited for dependences', span(created, start.ready), ['until ', critical, ` ended at ${time(start.ready)} on ${name(task.critical_predecessor.runner)}`]]);
      else if (critical) rows.push(['waited for dependences', '0 ns', [critical, ' had ended before']]);
      rows.push(['waited in the queue', span(start.ready, began), [freeWords(start, began - start.ready, name)]]);
    } else if (began !== null) rows.push(['waited to run', span(created, began) || 'not known', critical ? ['last predecessor: ', critical, '; the split is not known'] : ['the split is not known']]);
    rows.push(['began', time(began), task.runner === null ? [] : [`on ${name(task.runner)}`]]);
    rows.push(['ended', time(ended), ended === null || began === null ? [] : [`after ${span(began, ended)}`]]);
    return element('ol', { class: 'steps', id: 'steps' }, ...rows.map(([what, length, more]) => element('li', {}, element('strong', {}, what), ' ', element('span', { class: 'number' }, length), ' ', ...more)));
  }

  /** Draws the arrows of the visible part, or takes them away. */
  toggleFlows() {
    this.showsFlows = !this.showsFlows;
    this.flowsButton.setAttribute('aria-pressed', String(this.showsFlows));
    this.timeline.flows = [];
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
      if (!answer || !this.showsFlows) return;
      this.timeline.flows = answer.flows.map((flow) => ({ kind: flow.kind, fromTrack: flow.from_track, from: flow.from, toTrack: flow.to_track, to: flow.to, critical: false, ...(flow.kind === 'submission' ? { toView: 'devices' } : {}) }));
      this.timeline.redraw();
      this.live.textContent = `${formatCount(answer.flows.length)} arrows${answer.left_out ? `, ${formatCount(answer.left_out)} more are not drawn: zoom in` : ''}`;
      this.status.textContent = answer.left_out ? this.live.textContent : '';
    }, 120);
  }

  /** @param {import('./source.js').TaskRef} ref */
  async goToTask(ref) {
    const isNewest = this.turnPanel();
    const task = await this.askTask(ref);
    if (task.runner !== null && task.began !== null) {
      const found = await this.source.json('section', { track: task.runner, at: task.began });
      if (!isNewest()) return;
      if (found) this.timeline.reveal(found);
    }
    await this.showTask(ref, true, isNewest);
  }

  /** @param {'next' | 'previous'} step */
  async find(step) {
    const text = this.search.value.trim();
    if (!text) { this.search.focus(); return; }
    const goesOn = this.timeline.marked && text === this.searched;
    const at = goesOn ? this.timeline.marked.start : Math.max(0, Math.floor(this.timeline.from) - (step === 'next' ? 1 : 0));
    this.searched = text;
    // Others may start in the same nanosecond on other rows. Rows of model views are no threads.
    const { view, track } = goesOn ? this.timeline.marked : {};
    const row = goesOn && (!view || view === 'devices') ? { track, view: view || 'state' } : {};
    const ask = (step) => this.source.json('search', { text, at, step, ...row });
    const end = step === 'next' ? 'first' : 'last';
    const isNewest = this.turnPanel();
    let found, around = '';
    try {
      // What begins with the run begins after nothing.
      found = await ask(!goesOn && step === 'next' && this.timeline.from <= 0 ? end : step);
      if (!found) {
        found = await ask(end);
        around = found ? `nothing ${step === 'next' ? 'after' : 'before'} ${formatTime(at)} matches: from the ${step === 'next' ? 'beginning' : 'end'} again` : '';
      }
    } catch (error) {
      this.say(error);
      return;
    }
    if (!isNewest()) return;
    this.found = found;
    if (!found) {
      const isFilter = /[=<>~]|\.\./.test(text);
      this.live.textContent = `nothing matches${isFilter && this.overview.devices.rows.length ? '; filters apply to threads, words to device queues too' : ''}`;
      this.panel.replaceChildren(element('p', { id: 'nothing' }, this.live.textContent));
      this.tellTotals(text);
      return;
    }
    this.tellTotals(text);
    this.timeline.reveal(found);
    if (found.view) this.showOperation(found);
    else await this.showSection(found, isNewest);
    if (around && isNewest()) {
      this.live.textContent = around;
      this.panel.prepend(element('p', { id: 'around', class: 'note' }, around));
    }
  }

  /** Tells how many matches there are and their time, or similar searches where there is none. @param {string} text */
  async tellTotals(text) {
    if (this.totals?.text !== text) {
      this.matches.textContent = '…';
      const totals = await this.source.json('totals', { text }).catch(() => null);
      if (!totals || text !== this.searched) return;
      this.totals = { text, ...totals };
    }
    const { sections, ns, operations, hints } = this.totals;
    const counts = [...(sections || !operations ? [`${formatNumberOf(sections, 'section')}${sections ? `, ${formatTime(ns)}` : ''}`] : []), ...(operations ? [formatNumberOf(operations, 'operation')] : [])];
    this.matches.textContent = counts.join('; ');
    const nothing = document.getElementById('nothing');
    if (!hints.length || !nothing) return;
    const go = (hint) => element('button', { type: 'button', class: 'link', onclick: () => { this.search.value = hint; this.find('next'); } }, fitText(hint, 80));
    nothing.after(element('p', { id: 'hints' }, 'Did you mean: ', ...hints.flatMap((hint, at) => [at ? ', ' : '', go(hint)])));
  }

  /** @param {{from: number, to: number} | null} range */
  showRange(range) {
    clearTimeout(this.ranging);
    // Tables of what is no longer selected would be taken for those of the run.
    if (!range && document.getElementById('range-title')) this.showRun();
    if (!range || range.to <= range.from) return;
    const isNewest = this.turnPanel();
    this.ranging = setTimeout(async () => {
      const answer = await this.source.json('range', { from: range.from, to: range.to });
      if (!isNewest()) return;
      this.range = answer;
      const total = Object.values(answer.states).reduce((sum, ns) => sum + ns, 0);
      const { unit, show } = unitOf(total);
      const number = (name) => this.overview.states.findIndex((state) => state.name === name);
      const states = Object.entries(answer.states).sort((a, b) => b[1] - a[1]);
      const useful = (row) => this.overview.states.reduce((sum, state) => sum + (state.group === 'useful' ? row.states[state.name] || 0 : 0), 0);
      const command = `taskscope slice ${shellWord(String(this.report.trace))} --range ${answer.range} -o part.trace`;
      this.panel.replaceChildren(element('h2', { id: 'range-title' }, `selected: ${formatTime(answer.wall_ns)}`),
        this.facts([['from', formatStart(range.from, range.to - range.from)], ['to', formatStart(range.to, range.to - range.from)], ['tasks begun', formatCount(answer.tasks_begun)]]),
        element('button', { type: 'button', onclick: () => this.timeline.show(range.from, range.to) }, 'zoom to it (f)'), ' ',
        element('button', { type: 'button', id: 'save-slice', title: 'the selected time as a trace, in an archive', onclick: () => this.slice(range) }, 'save as a slice'), ' ',
        element('button', { type: 'button', id: 'report-part', title: 'efficiency, findings, causes, task types, waits, call paths of the selected time', onclick: () => this.reportPart(range) }, 'report it'), ' ',
        element('button', { type: 'button', id: 'save-page', title: 'the report of the selected time with its timeline, as one HTML file', onclick: () => this.savePage(range) }, 'save as HTML'),
        answer.queues.length ? table('By device queue', [{ title: 'queue', cell: (row) => nameOf(row.name) }, { title: 'begun', number: true, cell: (row) => formatCount(row.operations_begun) },
          { title: 'kernels', number: true, cell: (row) => formatTime(row.kernels_ns) }, { title: 'transfers', number: true, cell: (row) => formatTime(row.transfers_ns) }], answer.queues) : '',
        total === 0 ? '' : table('By state', [{ title: 'state', cell: ([name]) => this.overview.states[number(name)].label },
          { title: `thread-${unit}`, number: true, cell: ([, ns]) => show(ns) }, { title: 'share', number: true, cell: ([, ns]) => formatPercent(ns, total) },
          { title: '', cell: ([name, ns]) => bar(ns / total, '', this.theme.state[number(name)]) }], states),
        total === 0 ? '' : table('By state and place', [{ title: 'state', cell: (row) => row.label }, { title: 'place', cell: (row) => nameOf(row.place) },
          { title: 'time', number: true, cell: (row) => formatTime(row.ns) }, { title: 'sections', number: true, cell: (row) => formatCount(row.sections) }], answer.places),
        total === 0 ? '' : table('By thread', [{ title: 'thread', cell: (row) => this.trackName(row.track) }, { title: 'useful', number: true, cell: (row) => formatPercent(useful(row), answer.wall_ns) }], answer.threads),
        element('p', { class: 'note' }, 'as a trace: ', element('code', { id: 'slice' }, command)));
    }, 60);
  }

  /** Shows the report of a range; a click on a name highlights its sections. @param {{from: number, to: number}} range */
  async reportPart(range) {
    this.status.textContent = 'replaying the trace for the report of the selected time';
    const isNewest = this.turnPanel();
    try {
      const report = await this.source.json('report', { from: range.from, to: Math.max(range.to, range.from + 1) });
      const matrix = await this.source.json('matrix', { from: range.from, to: Math.max(range.to, range.from + 1) });
      if (!isNewest()) return;
      const known = { states: this.overview.states };
      const link = (text) => (text ? element('button', { type: 'button', class: 'link name', title: `highlight ${text.slice(0, 2000)}`, onclick: () => this.highlightName(text) }, fitText(text, NAME)) : nameOf(text));
      const length = range.to - range.from;
      this.panel.replaceChildren(element('h2', { id: 'part-title', tabindex: -1 }, `report of ${formatTime(length)} from ${formatStart(range.from, length)} on`),
        report.verdict ? element('p', { class: 'verdict' }, fitText(report.verdict, 600)) : '',
        element('p', { class: 'note' }, 'A click on a name highlights its sections. The same numbers: ', element('code', {}, `taskscope report ${report.part} ${shellWord(String(this.report.trace))}`)),
        efficiencyTree(report), findings(report, known, this.theme, 0, null) || '', tables(report, known, this.theme, link) || '', communicationMatrix(matrix) || '', callPaths(report) || '');
      document.getElementById('part-title')?.focus();
      // For the console and for tests.
      this.part = report;
    } catch (error) {
      this.say(error);
    }
    this.status.textContent = '';
  }

  /** Dims what is not of this place or type; the same name again ends that. @param {string} name */
  async highlightName(name) {
    // A name with signs of the filter language is a quoted text in it.
    const text = /[=<>~()]/.test(name) ? `place = ${JSON.stringify(name)} or type = ${JSON.stringify(name)}` : name;
    this.search.value = text;
    await this.highlight(this.source.filter === text ? '' : text);
  }

  /** Saves the report of a range, with its timeline, as one file that needs no server. @param {{from: number, to: number}} range */
  async savePage(range) {
    this.status.textContent = 'replaying the trace for a page of the selected time';
    try {
      const response = await this.source.request('page', { from: range.from, to: Math.max(range.to, range.from + 1) });
      saveFile('part.html', new Blob([await response.arrayBuffer()], { type: 'text/html' }));
    } catch (error) {
      this.say(error);
    }
    this.status.textContent = '';
  }

  /** Saves a range as a trace of its own. @param {{from: number, to: number}} range */
  async slice(range) {
    this.status.textContent = 'cutting the slice';
    try {
      const response = await this.source.request('slice', { from: range.from, to: Math.max(range.to, range.from + 1) });
      saveFile('slice.trace.tar', await response.blob());
    } catch (error) {
      this.say(error);
    }
    this.status.textContent = '';
  }

  showRun() {
    this.turnPanel();
    this.timeline.edges = [];
    this.timeline.redraw();
    const { unit, show } = unitOf(this.report.findings_base_ns);
    const rows = (this.report.findings || []).filter((row) => isLarge(row, this.report));
    const list = rows.map((row) => {
      const instance = this.overview.instances.find((other) => other.finding === row.id);
      return element('li', {}, element('strong', {}, row.id), ` ${fitText(row.text, 300)} `, element('span', { class: 'loss' }, `${show(row.ns)} ${ownerOf(this.report)}${unit}`), row.try ? element('p', {}, 'Try: ', ...codeText(row.try, 600)) : ' ',
        instance ? element('button', { type: 'button', class: 'link', onclick: () => this.timeline.reveal(instance) }, 'worst instance') : null);
    });
    const queues = (this.report.devices && this.report.devices.queues) || [];
    const ofDevices = queues.length ? [['device queues', formatCount(queues.length)], ['device operations', formatCount(queues.reduce((sum, queue) => sum + queue.operations, 0))]] : [];
    // A trace of device queues has no workers, of samples alone no states: how well their time was used is not known.
    const known = this.report.capacity_ns && !this.report.samples_alone;
    this.panel.replaceChildren(element('h2', {}, 'The run'),
      this.facts([['trace', nameOf(this.report.trace)], ['wall time', formatTime(this.report.wall_ns || this.overview.length_ns)], ['workers', formatCount(this.report.workers)], ['CPUs', this.report.cpus_text || 'not known'], ['tasks', formatCount(this.report.tasks)], ['events', formatCount(this.report.events)],
        ['lost events', formatCount(this.report.lost_events)], ...ofDevices, ['efficiency', known ? this.report.efficiency.parallel.toFixed(2) : 'not known']]),
      ...(this.report.verdict ? [element('p', {}, element('strong', {}, fitText(this.report.verdict, 600)))] : []),
      ...(list.length ? [element('h3', {}, 'Findings'), element('ol', { class: 'findings' }, ...list)] : []),
      ...remarksOfQueues(this.report).map((text) => element('p', { class: 'warn' }, text)),
      ...(this.report.notices || []).map((notice) => element('p', { class: 'warn' }, ...codeText(notice.text, 400))));
  }

  showKeys() {
    this.turnPanel();
    const keys = [['+ − / w s', 'zoom'], ['← → / a d', 'pan'], ['↑ ↓', 'thread above, below'], ['PgUp PgDn', 'scroll'], ['Home', 'whole run'], [', .', 'previous, next section of the thread'],
      ['Enter', 'open the section at the cursor'], ['space', 'fold or unfold'], ['/', 'search'], ['n N', 'next, previous match'], ['h', 'highlight matches'], ['e', 'arrows of the visible part'], ['p', 'put the row on top, or back'], ['f', 'zoom to the selection, or to the opened section'], ['m', 'select the time of the opened section'], ['[ ]', 'less, more room for names of rows'], ['Esc', 'clear'],
      ['ctrl+wheel', 'zoom'], ['wheel, drag', 'scroll, pan'], ['shift+drag', 'select a range: measure, tables'], ['click', 'open a section and its task'], ['pinch', 'zoom on a touch screen']];
    this.panel.replaceChildren(element('h2', {}, 'Keys'), this.facts(keys));
  }

  async png() {
    const blob = await timelinePng(this.timeline);
    if (blob) saveFile('timeline.png', blob);
  }

  svg() {
    saveFile('timeline.svg', new Blob([timelineSvg(this.timeline)], { type: 'image/svg+xml' }));
  }

  /** Writes what is shown into the address, so that it can be sent to somebody. */
  remember() {
    clearTimeout(this.remembering);
    this.remembering = setTimeout(() => {
      // The address still names views that are not known yet.
      if (this.unknownViews) return;
      const t = this.timeline;
      const parts = [`from=${Math.round(t.from)}`, `to=${Math.round(t.from + t.span)}`, `views=${t.views.join('+')}`, `y=${Math.round(t.scrollY)}`];
      if (t.rowMode !== 'fit') parts.push(`rows=${t.rowMode}`);
      if (t.selection) parts.push(`select=${t.selection.from}-${t.selection.to}`);
      if (this.source.filter) parts.push(`where=${encodeURIComponent(this.source.filter)}`);
      if (t.chosen.words) parts.push(`only=${encodeURIComponent(t.chosen.words)}`);
      if (t.chosen.top.length) parts.push(`top=${encodeURIComponent(t.chosen.top.join('\n'))}`);
      if (t.collapsed.size) parts.push(`folded=${encodeURIComponent([...t.collapsed].join('\n'))}`);
      this.written = `#${parts.join('&')}`;
      history.replaceState(null, '', this.written);
    }, 120);
  }

  /** Shows what the address says. */
  restore() {
    const words = new URLSearchParams(location.hash.slice(1).replace(/\+/g, '%2B'));
    const t = this.timeline;
    const wanted = (words.get('views') || '').split('+').filter((name) => name);
    const shown = wanted.filter((name) => this.shownView(name));
    const known = wanted.filter((name) => this.overview.views.some((row) => row.name === name));
    // Those of the models are known a little later, and then this is done again.
    this.unknownViews = known.length < wanted.length;
    if (known.length) t.views = known;
    if (shown.length) this.fillViews();
    this.showChosen();
    t.collapsed = new Set((words.get('folded') || '').split('\n').filter((key) => key));
    t.chosen = { words: words.get('only') || '', top: (words.get('top') || '').split('\n').filter((key) => key) };
    this.only.value = t.chosen.words;
    t.rowMode = words.get('rows') || 'fit';
    t.setRowMode(t.rowMode);
    this.tall.value = t.rowMode;
    const [from, to] = [Number(words.get('from')), Number(words.get('to'))];
    if (words.has('from') && Number.isFinite(from) && Number.isFinite(to) && to > from) t.show(from, to);
    const y = Number(words.get('y'));
    if (Number.isFinite(y)) t.scroll(y - t.scrollY);
    this.wantedY = Number.isFinite(y) ? y : undefined;
    this.loadShown();
    const filter = words.get('where') || '';
    if (filter !== this.source.filter) {
      this.search.value = filter;
      this.highlight(filter);
    }
    const select = /^(\d+)-(\d+)$/.exec(words.get('select') || '');
    if (select) t.select(Number(select[1]), Number(select[2]));
    else if (t.selection) t.clearSelection();
  }

  async copyLink() {
    this.turnPanel();
    this.remember();
    await new Promise((resolve) => setTimeout(resolve, 150));
    const link = new URL(location.href);
    link.searchParams.set('token', this.source.token);
    this.panel.replaceChildren(element('p', {}, 'the address of this view (anyone who has it can read the trace while the viewer runs):'), element('code', { id: 'address' }, link.href));
    if (navigator.clipboard) await navigator.clipboard.writeText(link.href).catch(() => {});
  }
}

/**
 * Asks the server for the run and fills the page with it.
 * @param {HTMLElement} page
 * @returns {Promise<Viewer>}
 */
export async function showViewer(page) {
  const { source, overview } = await ServerSource.open('api');
  return new Viewer(page, source, overview);
}
