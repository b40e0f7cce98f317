// The viewer: the timeline over the whole window, with search, tables of a range, and tasks.

import { element, table, bar } from './elements.js';
import { formatCount, formatPercent, formatSeconds, formatTime, fitText } from './format.js';
import { legend } from './charts.js';
import { makeTheme } from './palette.js';
import { ServerSource } from './source.js';
import { TimelineView } from './timeline.js';
import { saveFile, timelinePng, timelineSvg } from './picture.js';
import { nameOf } from './report.js';

/** How long the pointer rests before its section is asked for. */
const REST_MS = 40;

class Viewer {
  /**
   * @param {HTMLElement} page
   * @param {ServerSource} source
   * @param {any} overview
   */
  constructor(page, source, overview) {
    this.source = source;
    this.overview = overview;
    this.report = overview.report;
    this.names = new Map(overview.tracks.map((track) => [track.track, track]));
    this.dark = matchMedia('(prefers-color-scheme: dark)').matches;
    this.theme = makeTheme(this.dark, overview.states);
    this.panel = element('aside', { id: 'panel', 'aria-label': 'Details', tabindex: 0 });
    this.tip = element('div', { id: 'tip', role: 'status' });
    this.live = element('p', { id: 'live', 'aria-live': 'polite', class: 'hidden' });
    this.host = element('div', { id: 'timeline-host' });
    this.legendHost = element('div', {});
    page.replaceChildren(element('div', { class: 'viewer' }, this.toolbar(), element('div', { class: 'split' }, this.host, this.panel), this.legendHost, this.tip, this.live));
    document.body.classList.add('viewing');
    this.timeline = new TimelineView(this.host, overview, source, {
      onHover: (track, at, x, y) => this.hover(track, at, x, y), onLeave: () => this.leave(),
      onSection: (track, at) => this.open(track, at), onSelect: (range) => this.showRange(range),
      onChange: () => this.remember(), onSay: (text) => { this.live.textContent = text; },
    });
    this.drawLegend();
    this.showRun();
    this.restore();
    window.addEventListener('hashchange', () => { if (location.hash !== this.written) this.restore(); });
    document.addEventListener('keydown', (event) => this.key(event));
  }

  toolbar() {
    const button = (id, label, title, onclick) => element('button', { type: 'button', id, title, onclick }, label);
    this.search = /** @type {HTMLInputElement} */ (element('input', { id: 'search', type: 'search', placeholder: 'gemm, barrier, task 12, duration>1ms', title: 'a word of a state, task type or place; task 12; or a filter: state=barrier and duration>1ms', 'aria-label': 'Search', size: 30, maxlength: 400 }));
    this.search.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.find(event.shiftKey ? 'previous' : 'next');
      if (event.key === 'Escape') this.timeline.canvas.focus();
    });
    const view = element('select', { id: 'view', 'aria-label': 'View', title: 'what colours the threads', onchange: (event) => this.timeline.setViews([event.target.value, ...this.timeline.views.slice(1)]) },
      ...this.overview.views.map((row) => element('option', { value: row.name }, row.label)));
    const second = element('select', { id: 'second', 'aria-label': 'Second view', title: 'a second view below, aligned in time', onchange: (event) => this.timeline.setViews(event.target.value ? [this.timeline.views[0], event.target.value] : [this.timeline.views[0]]) },
      element('option', { value: '' }, 'no second view'), ...this.overview.views.map((row) => element('option', { value: row.name }, `and ${row.label}`)));
    this.view = /** @type {HTMLSelectElement} */ (view);
    this.second = /** @type {HTMLSelectElement} */ (second);
    return element('div', { class: 'toolbar', role: 'toolbar', 'aria-label': 'Viewer' },
      element('strong', {}, 'taskscope'), view, second,
      button('in', '+', 'zoom in (+)', () => this.timeline.zoom(0.5)), button('out', '−', 'zoom out (−)', () => this.timeline.zoom(2)),
      button('all', 'all', 'the whole run (Home)', () => this.timeline.show(0, this.overview.length_ns)),
      this.search, button('previous', '◂', 'previous match (shift+n)', () => this.find('previous')), button('next', '▸', 'next match (n)', () => this.find('next')),
      button('png', 'PNG', 'save what is in sight as PNG', () => this.png()), button('svg', 'SVG', 'save what is in sight as SVG', () => this.svg()),
      button('link', 'link', 'copy the address of this view', () => this.copyLink()), button('theme', 'light/dark', 'light or dark', () => this.toggleTheme()),
      button('run', 'run', 'the run and its findings', () => this.showRun()), button('keys', '?', 'keys', () => this.showKeys()));
  }

  drawLegend() {
    const occurs = new Set(this.report.thread_states.flatMap((row) => Object.keys(row.states)));
    this.legendHost.replaceChildren(legend(this.overview.states, (name) => occurs.has(name), this.theme));
  }

  toggleTheme() {
    this.dark = !this.dark;
    document.documentElement.dataset.theme = this.dark ? 'dark' : 'light';
    this.theme = makeTheme(this.dark, this.overview.states);
    this.timeline.setTheme(this.dark);
    this.drawLegend();
  }

  /** @param {number} track */
  trackName(track) {
    const row = this.names.get(track);
    return row ? `thread ${row.tid}` : `track ${track}`;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/') { this.search.focus(); this.search.select(); event.preventDefault(); }
    else if (event.key === 'n') this.find('next');
    else if (event.key === 'N') this.find('previous');
    else if (event.key === '?') this.showKeys();
  }

  /** @param {number} track @param {number} at @param {number} x @param {number} y */
  hover(track, at, x, y) {
    clearTimeout(this.resting);
    this.resting = setTimeout(async () => {
      const number = (this.hovers = (this.hovers || 0) + 1);
      const found = await this.source.json('section', { track, at }).catch(() => null);
      if (number !== this.hovers || !found) { if (!found) this.leave(); return; }
      this.hovered = found;
      const lines = [`${found.label}${found.place ? `: ${fitText(found.place, 90)}` : ''}`, `${formatTime(found.end - found.start)} from ${formatTime(found.start)} on, ${this.trackName(track)}`];
      if (found.task !== null) lines.push(`task ${found.task}${found.task_type ? ` of ${fitText(found.task_type, 70)}` : ''}`);
      lines.push(...this.blameLines(found).slice(0, 3));
      this.tip.replaceChildren(...lines.map((line) => element('div', {}, line)));
      const box = this.host.getBoundingClientRect();
      this.tip.style.display = 'block';
      this.tip.style.left = `${Math.min(box.left + x + 14, window.innerWidth - this.tip.offsetWidth - 8)}px`;
      this.tip.style.top = `${Math.min(box.top + y + 16, window.innerHeight - this.tip.offsetHeight - 8)}px`;
    }, REST_MS);
  }

  leave() {
    clearTimeout(this.resting);
    this.hovers = (this.hovers || 0) + 1;
    this.tip.style.display = 'none';
  }

  /** Why a section waited and who made it. @param {any} found @returns {string[]} */
  blameLines(found) {
    const lines = [];
    if (found.object) lines.push(`waits for ${fitText(found.object, 80)}`);
    for (const row of (found.holders || []).slice(0, 3)) lines.push(`held by ${this.trackName(row.track)} for ${formatTime(row.ns)} of it${row.place ? `: ${fitText(row.place, 70)}` : ''}`);
    for (const row of (found.culprits || []).slice(0, 3)) lines.push(`meanwhile ${row.threads} of ${found.workers} workers: ${row.state}${row.place ? `, ${fitText(row.place, 70)}` : ''}`);
    if (found.ended_last) lines.push(`ended last before: ${found.ended_last.state}${found.ended_last.task !== null ? ` (task ${found.ended_last.task})` : ''} on ${this.trackName(found.ended_last.track)}`);
    if (found.long_from_ns && found.end - found.start >= found.long_from_ns) lines.push('long for its kind');
    return lines;
  }

  /** @param {number} track @param {number} at */
  async open(track, at) {
    const found = await this.source.json('section', { track, at });
    if (!found) return;
    this.timeline.marked = found;
    this.timeline.edges = [];
    this.timeline.redraw();
    await this.showSection(found);
  }

  /** @param {any} found */
  async showSection(found) {
    const facts = [['state', found.label], ['where', nameOf(found.place)], ['thread', this.trackName(found.track)], ['from', formatTime(found.start)], ['lasts', formatTime(found.end - found.start)], ['region', found.region === null ? '–' : `${found.region}`]];
    const lines = this.blameLines(found).map((line) => element('li', {}, line));
    const select = element('button', { type: 'button', onclick: () => this.timeline.select(found.start, found.end) }, 'select its time');
    this.panel.replaceChildren(element('h2', { id: 'section-title' }, found.label),
      this.facts(facts), lines.length ? element('ul', {}, ...lines) : '', select);
    if (found.task !== null) await this.showTask(found.task, false);
    this.live.textContent = `${found.label} ${found.place || ''}, ${formatTime(found.end - found.start)}`;
  }

  facts(rows) {
    return element('dl', { class: 'facts' }, ...rows.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
  }

  /** @param {number} number @param {boolean} alone */
  async showTask(number, alone = true) {
    const task = await this.source.json('task', { task: number });
    this.task = task;
    const time = (ns) => (ns === null ? 'not known' : formatTime(ns));
    const go = (other, label) => element('button', { type: 'button', class: 'link', onclick: () => this.goToTask(other) }, label);
    const list = (title, edges, count) => (count === 0 ? null : element('div', {}, element('h4', {}, `${title}: ${formatCount(count)}`),
      element('ul', {}, ...edges.slice(0, 12).map((edge) => element('li', {}, go(edge.task, `task ${edge.task}`), ` ${fitText(edge.type, 60)}, at ${edge.address}`)))));
    const critical = task.critical_predecessor;
    const made = element('div', { class: 'task', id: 'task' }, element('h3', {}, `task ${task.task}: ${fitText(task.type, 100)}`),
      this.facts([['line', task.line || '–'], ['status', task.status], ['created', time(task.created)], ['began', time(task.began)], ['ended', time(task.ended)],
        ['waited to run', task.began !== null && task.created !== null ? formatTime(task.began - task.created) : '–'],
        ['creator', task.creator === null ? '–' : `${this.trackName(task.creator)}${task.created_in ? `, in ${fitText(task.created_in, 60)}` : ''}`],
        ['parent', task.parent === null ? '–' : go(task.parent, `task ${task.parent}`)],
        ['critical predecessor', critical ? go(critical.task, `task ${critical.task} ${fitText(critical.type, 50)}`) : '–']]),
      list('depends on', task.predecessors, task.predecessors_count), list('others depend on it', task.successors, task.successors_count));
    if (alone) this.panel.replaceChildren(made);
    else this.panel.append(made);
    this.timeline.edges = this.edgesOf(task);
    this.timeline.redraw();
  }

  /** Arrows: creation, dependences, the critical one thick. @param {any} task */
  edgesOf(task) {
    const edges = [];
    if (task.creator !== null && task.runner !== null && task.created !== null && task.began !== null) {
      edges.push({ kind: 'creator', fromTrack: task.creator, from: task.created, toTrack: task.runner, to: task.began, critical: false });
    }
    const critical = task.critical_predecessor ? task.critical_predecessor.task : null;
    for (const edge of task.predecessors) {
      if (edge.runner !== null && edge.ended !== null && task.began !== null) {
        edges.push({ kind: 'dependence', fromTrack: edge.runner, from: edge.ended, toTrack: task.runner, to: task.began, critical: edge.task === critical });
      }
    }
    for (const edge of task.successors) {
      if (edge.runner !== null && edge.began !== null && task.ended !== null) {
        edges.push({ kind: 'dependence', fromTrack: task.runner, from: task.ended, toTrack: edge.runner, to: edge.began, critical: false });
      }
    }
    return edges;
  }

  /** @param {number} number */
  async goToTask(number) {
    const task = await this.source.json('task', { task: number });
    if (task.runner !== null && task.began !== null) {
      const found = await this.source.json('section', { track: task.runner, at: task.began });
      if (found) this.timeline.reveal(found);
    }
    await this.showTask(number);
  }

  /** @param {'next' | 'previous'} step */
  async find(step) {
    const text = this.search.value.trim();
    if (!text) { this.search.focus(); return; }
    const at = this.timeline.marked && text === this.searched ? this.timeline.marked.start : Math.max(0, Math.floor(this.timeline.from) - (step === 'next' ? 1 : 0));
    this.searched = text;
    const found = await this.source.json('search', { text, at, step });
    this.found = found;
    if (!found) {
      this.live.textContent = `nothing ${step === 'next' ? 'after' : 'before'} ${formatTime(at)} matches`;
      this.panel.replaceChildren(element('p', { id: 'nothing' }, this.live.textContent));
      return;
    }
    this.timeline.reveal(found);
    await this.showSection(found);
  }

  /** @param {{from: number, to: number} | null} range */
  showRange(range) {
    clearTimeout(this.ranging);
    if (!range || range.to <= range.from) return;
    this.ranging = setTimeout(async () => {
      const answer = await this.source.json('range', { from: range.from, to: range.to });
      this.range = answer;
      const total = Object.values(answer.states).reduce((sum, ns) => sum + ns, 0);
      const number = (name) => this.overview.states.findIndex((state) => state.name === name);
      const states = Object.entries(answer.states).sort((a, b) => b[1] - a[1]);
      const useful = (row) => this.overview.states.reduce((sum, state) => sum + (state.group === 'useful' ? row.states[state.name] || 0 : 0), 0);
      const command = `taskscope slice ${this.report.trace} --range ${range.from}ns..${range.to}ns -o part.trace`;
      this.panel.replaceChildren(element('h2', { id: 'range-title' }, `selected: ${formatTime(answer.wall_ns)}`),
        this.facts([['from', formatTime(range.from)], ['to', formatTime(range.to)], ['tasks begun', formatCount(answer.tasks_begun)]]),
        element('button', { type: 'button', onclick: () => this.timeline.show(range.from, range.to) }, 'zoom to it (f)'),
        table('By state', [{ title: 'state', cell: ([name]) => this.overview.states[number(name)].label },
          { title: 'thread-s', number: true, cell: ([, ns]) => formatSeconds(ns) }, { title: 'share', number: true, cell: ([, ns]) => formatPercent(ns, total) },
          { title: '', cell: ([name, ns]) => bar(ns / total, '', this.theme.state[number(name)]) }], states),
        table('By state and place', [{ title: 'state', cell: (row) => row.label }, { title: 'place', cell: (row) => nameOf(row.place) },
          { title: 'time', number: true, cell: (row) => formatTime(row.ns) }, { title: 'sections', number: true, cell: (row) => formatCount(row.sections) }], answer.places),
        table('By thread', [{ title: 'thread', cell: (row) => this.trackName(row.track) }, { title: 'useful', number: true, cell: (row) => formatPercent(useful(row), answer.wall_ns) }], answer.threads),
        element('p', { class: 'note' }, 'as a trace of its own: ', element('code', { id: 'slice' }, command)));
    }, 60);
  }

  showRun() {
    const rows = (this.report.findings || []).filter((row) => row.ns * 200 >= this.report.capacity_ns);
    const list = rows.map((row) => {
      const instance = this.overview.instances.find((other) => other.finding === row.id);
      return element('li', {}, element('strong', {}, row.id), ` ${fitText(row.text, 300)} `, element('span', { class: 'loss' }, `${formatSeconds(row.ns)} worker-s`),
        instance ? element('button', { type: 'button', class: 'link', onclick: () => this.timeline.reveal(instance) }, 'worst instance') : null);
    });
    this.panel.replaceChildren(element('h2', {}, 'The run'),
      this.facts([['trace', nameOf(this.report.trace)], ['wall time', formatTime(this.report.wall_ns)], ['workers', formatCount(this.report.workers)], ['tasks', formatCount(this.report.tasks)], ['events', formatCount(this.report.events)],
        ['lost events', formatCount(this.report.lost_events)], ['efficiency', this.report.efficiency.parallel.toFixed(2)]]),
      element('h3', {}, 'Findings'), element('ol', { class: 'findings' }, ...list),
      ...(this.report.notices || []).map((notice) => element('p', { class: 'warn' }, fitText(notice.text, 400))));
  }

  showKeys() {
    const keys = [['+ − / w s', 'zoom'], ['← → / a d', 'pan'], ['↑ ↓', 'thread above, below'], ['PgUp PgDn', 'scroll'], ['Home', 'whole run'], [', .', 'previous, next section of the thread'],
      ['Enter', 'open the section at the cursor'], ['space', 'fold or unfold'], ['/', 'search'], ['n N', 'next, previous match'], ['f', 'zoom to the selection'], ['Esc', 'clear'],
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
      const t = this.timeline;
      const parts = [`from=${Math.round(t.from)}`, `to=${Math.round(t.from + t.span)}`, `views=${t.views.join('+')}`, `y=${Math.round(t.scrollY)}`];
      if (t.selection) parts.push(`select=${t.selection.from}-${t.selection.to}`);
      if (t.collapsed.size) parts.push(`folded=${encodeURIComponent([...t.collapsed].join('\n'))}`);
      this.written = `#${parts.join('&')}`;
      history.replaceState(null, '', this.written);
    }, 120);
  }

  /** Shows what the address says. */
  restore() {
    const words = new URLSearchParams(location.hash.slice(1).replace(/\+/g, '%2B'));
    const t = this.timeline;
    const known = (words.get('views') || '').split('+').filter((name) => this.overview.views.some((row) => row.name === name)).slice(0, 2);
    if (known.length) t.views = known;
    this.view.value = t.views[0];
    this.second.value = t.views[1] || '';
    t.collapsed = new Set((words.get('folded') || '').split('\n').filter((key) => key));
    t.layout();
    const [from, to] = [Number(words.get('from')), Number(words.get('to'))];
    if (words.has('from') && Number.isFinite(from) && Number.isFinite(to) && to > from) t.show(from, to);
    const y = Number(words.get('y'));
    if (Number.isFinite(y)) t.scroll(y - t.scrollY);
    const select = /^(\d+)-(\d+)$/.exec(words.get('select') || '');
    if (select) t.select(Number(select[1]), Number(select[2]));
  }

  async copyLink() {
    this.remember();
    await new Promise((resolve) => setTimeout(resolve, 150));
    const link = new URL(location.href);
    link.searchParams.set('token', this.source.token);
    this.panel.replaceChildren(element('p', {}, 'the address of this view (whoever has it can look at the trace while the viewer runs):'), element('code', { id: 'address' }, link.href));
    if (navigator.clipboard) await navigator.clipboard.writeText(link.href).catch(() => {});
  }
}

/**
 * Asks the server for the run and fills the page with it.
 * @param {HTMLElement} page
 * @returns {Promise<Viewer>}
 */
export async function showViewer(page) {
  const token = new URLSearchParams(location.search).get('token') || '';
  const response = await fetch('api/overview', { headers: { 'x-taskscope-token': token }, cache: 'no-store' });
  if (!response.ok) throw new Error(await response.text());
  const overview = await response.json();
  return new Viewer(page, new ServerSource(token, overview.start_ns), overview);
}
