// Two runs beside each other. Numbers are those of `diff`; timelines and call paths are of the runs themselves.

import { bar, element, nameOf, part } from './elements.js';
import { formatCount, formatDate, formatNumberOf, formatPoint, formatTime, fitText } from './format.js';
import { AlignedStrip, alignedPoints, alignedTime, growthOf, growthWords, partWords } from './aligned.js';
import { legend } from './charts.js';
import { flameDifference, flameLegend } from './flame_difference.js';
import { makeTheme } from './palette.js';
import { isPrinting, keepingFocus, onPaper } from './paper.js';
import { leadingWords, saveButton } from './report.js';
import { shortLines } from './details.js';
import { EmbeddedSource, ServerSource, readJson } from './source.js';
import { table, timeColumn } from './table.js';
import { trackLabel, viewsAtFirst } from './rows.js';
import { TimelineView } from './timeline.js';

/** Height of each timeline, pixels. */
const TIMELINE_TALL = 300;
/** Times below this share of the capacity are one row. */
const LEAST_SHARE = 0.001;
const BEFORE = 0;
const SIDES = ['before', 'after'];

/** @typedef {{group: string, name: string, label: string, before: number, after: number, difference: number, growth: number | null, interval_95: [number, number] | null, certain: boolean | null}} NumberRow */
/** A side with a timeline; `viewer` gives the address of its own viewer, where a server answers. @typedef {{overview: any, source: any, viewer?: (from: number, to: number) => string}} ShownSide */

/** A change in words. @param {NumberRow} row @param {(value: number) => string} show */
function changeWords(row, show) {
  const sign = row.difference < 0 ? '−' : '+';
  const growth = row.growth === null ? 'new' : row.after === 0 && row.before > 0 ? 'gone' : Math.abs(row.growth) >= 10 ? `× ${(row.growth + 1).toFixed(0)}` : `${row.growth < 0 ? '−' : '+'}${Math.abs(row.growth * 100).toFixed(1)} %`;
  return `${sign}${show(Math.abs(row.difference))} (${growth})`;
}

/** A bar from the middle: to the right where something grew. @param {number} share of the largest change, −1 to 1 @param {string} label */
function changeBar(share, label) {
  const fill = element('span', { class: 'fill' });
  Object.assign(fill.style, { width: `${Math.abs(share) * 50}%`, left: `${share < 0 ? 50 - Math.abs(share) * 50 : 50}%` });
  return element('span', { class: `bar change ${share < 0 ? 'shrinks' : 'grows'}`, role: 'img', 'aria-label': label }, fill);
}

/**
 * A table of numbers of both sides.
 * @param {string} caption
 * @param {string} title of the first column
 * @param {NumberRow[]} rows
 * @param {[number, number]} runs on each side
 */
function numbersTable(caption, title, rows, runs) {
  const largest = Math.max(1, ...rows.map((row) => Math.abs(row.difference)));
  const hasIntervals = runs[0] > 1 && runs[1] > 1;
  return table(caption, [
    { title, cell: (row) => nameOf(row.label) },
    { title: 'change', number: true, ns: true, value: (row) => row.difference, cell: (row) => changeWords(row, formatTime) },
    { title: '', cell: (row) => changeBar(row.difference / largest, changeWords(row, formatTime)) },
    timeColumn('before', (row) => row.before, formatTime), timeColumn('after', (row) => row.after, formatTime),
    ...(hasIntervals ? [{ title: '95 % interval of the change', number: true, cell: (row) => (row.interval_95 ? `${row.interval_95.map((ns) => formatTime(ns)).join(' to ')}${row.certain ? '' : ', may be chance'}` : '–') }] : []),
  ], rows, 15);
}

/** What the runs were. @param {any} comparison */
function whatWasCompared(comparison) {
  const { difference, shown } = comparison;
  const labels = { cpus: 'CPUs', off_cpu: 'times off the CPU' };
  const runs = (set) => `${fitText(set.name, 200)}${set.runs > 1 ? ` (${formatNumberOf(set.runs, 'run')}; the timeline is of ${fitText(String(shown[set === difference.before ? 0 : 1].trace), 120)})` : ''}`;
  const facts = difference.run.map((fact) => ({ name: labels[fact.name] || fact.name, before: fact.before, after: fact.after, changed: fact.changed }));
  const date = (side) => (shown[side].start_unix_ns ? formatDate(shown[side].start_unix_ns) : null);
  const same = facts.filter((fact) => fact.changed === false);
  const changed = facts.filter((fact) => fact.changed);
  const rows = [{ name: 'run', before: runs(difference.before), after: runs(difference.after) }, ...(date(0) || date(1) ? [{ name: 'started', before: date(0), after: date(1) }] : []), ...facts.filter((fact) => fact.changed !== false)];
  return part('what', 'What was compared',
    changed.length ? element('p', { class: 'warn' }, `The runs differ in ${changed.map((fact) => fact.name).join(', ')}: differences of their numbers may come from that.`) : null,
    table('The runs', [{ title: '', cell: (row) => row.name }, ...SIDES.map((side) => ({ title: side, cell: (row) => (row.changed ? element('strong', {}, nameOf(row[side])) : nameOf(row[side])) }))], rows, 20),
    same.length ? element('details', { class: 'brief' }, element('summary', {}, `Unchanged: ${same.map((fact) => fact.name).join(', ')}`), element('dl', { class: 'facts' }, ...same.flatMap((fact) => [element('dt', {}, fact.name), element('dd', {}, nameOf(fact.before))]))) : null,
    ...difference.notes.map((note) => element('p', { class: 'note' }, fitText(note, 400))),
    difference.before.runs === 1 || difference.after.runs === 1 ? element('p', { class: 'note' }, 'One run on a side: no test of significance is possible. Give directories with several traces each.') : null);
}

/** @param {NumberRow[]} rows */
function efficiencyChange(rows) {
  const factors = rows.filter((row) => row.name === 'parallel' || Math.min(row.before, row.after) < 0.9995);
  if (!factors.length) return null;
  const share = (value) => value.toFixed(3);
  return part('efficiency', 'Efficiency', table('Factors of the parallel efficiency', [
    { title: 'factor', cell: (row) => row.label }, { title: 'before', number: true, value: (row) => row.before, cell: (row) => share(row.before) }, { title: '', cell: (row) => bar(row.before, `before ${share(row.before)}`) },
    { title: 'after', number: true, value: (row) => row.after, cell: (row) => share(row.after) }, { title: '', cell: (row) => bar(row.after, `after ${share(row.after)}`) },
    { title: 'change', number: true, value: (row) => row.difference, cell: (row) => `${row.difference < 0 ? '−' : '+'}${share(Math.abs(row.difference))}` },
  ], factors));
}

/** Both timelines, and how time of one becomes time of the other. */
class TwoTimelines {
  /**
   * @param {any} comparison
   * @param {[ShownSide, ShownSide]} sides
   * @param {boolean} dark
   */
  constructor(comparison, sides, dark) {
    this.sides = sides;
    this.lengths = /** @type {[number, number]} */ (sides.map((side) => side.overview.length_ns));
    this.parts = comparison.alignment.parts;
    this.points = alignedPoints(this.parts, this.lengths);
    /** `scale`: the same time for a pixel; `parts`: the same parts in sight. */
    this.mode = 'scale';
    this.hosts = [0, 1].map((side) => element('div', { class: 'timeline-host', id: `timeline-${SIDES[side]}` }));
    this.said = element('p', { class: 'note', id: 'section', role: 'status' }, 'Select a section of a timeline to see what it is.');
    this.strip = new AlignedStrip(this.parts, () => this.timelines);
    this.dark = dark;
  }

  /** Makes the canvases, when their places are in the page. */
  start() {
    const made = this.sides.map(({ overview, source }, side) => new TimelineView(this.hosts[side], overview, source, {
      onHover: (row, at) => { if (source.leadingAt) this.hosts[side].title = `${row.label} at ${formatPoint(at, made[side].nsPerPixel)}: ${leadingWords(source, overview, row, at)}`; },
      onLeave: () => { this.hosts[side].title = ''; },
      onSection: (row, at) => this.tell(side, row, at),
      onSay: (text) => { this.said.textContent = text; },
      onChange: () => this.follow(/** @type {0 | 1} */ (side)),
      onDrawn: () => { if (this.timelines) this.strip.draw(); },
    }, { height: isPrinting() ? 420 : TIMELINE_TALL }));
    this.timelines = /** @type {[TimelineView, TimelineView]} */ (made);
    for (const [side, timeline] of made.entries()) {
      const { overview } = this.sides[side];
      timeline.views = viewsAtFirst(overview, overview.report || { samples_alone: Boolean(overview.code_rows) });
      // The shorter run has its end in sight.
      timeline.length = Math.max(...this.lengths);
      timeline.collapsed.add('tasks');
      timeline.setTheme(this.dark);
      timeline.resize();
    }
    this.show(0, Math.max(...this.lengths));
  }

  /** Pictures in the place of the canvases, as they are now. */
  print() {
    this.timelines.forEach((timeline, side) => this.hosts[side].replaceChildren(timeline.pictureInSight()));
    this.strip.draw();
  }

  /** @param {number} from of the run before @param {number} to */
  show(from, to) {
    this.timelines[BEFORE].show(from, to);
  }

  /** Brings the other timeline to the same place. @param {0 | 1} side which was moved */
  follow(side) {
    if (!this.timelines || this.following) return;
    this.following = true;
    const [moved, other] = [this.timelines[side], this.timelines[1 - side]];
    // Gutters differ until names have their room; rows begin at one place.
    if (other.gutter !== moved.gutter) other.setGutter(moved.gutter);
    if (this.isWhole(moved)) other.show(0, other.length);
    else {
      const from = alignedTime(this.points, moved.from, side);
      other.show(from, this.mode === 'parts' ? alignedTime(this.points, moved.from + moved.span, side) : from + moved.span);
    }
    this.following = false;
  }

  /** @param {TimelineView} timeline */
  isWhole(timeline) {
    return this.mode === 'scale' && timeline.span >= timeline.length;
  }

  /** @param {string} mode */
  setMode(mode) {
    this.mode = mode;
    const [before] = this.timelines;
    if (mode === 'parts' && before.span >= before.length) this.show(0, this.lengths[0]);
    else this.follow(BEFORE);
  }

  /** Tells what a section is, with its place in the run's own viewer. @param {number} side @param {import('./rows.js').Row} row @param {number} at */
  async tell(side, row, at) {
    const { overview, source, viewer } = this.sides[side];
    const beginning = `${SIDES[side]}, ${row.label}`;
    if (!source.json) {
      this.said.textContent = `${beginning} at ${formatPoint(at, this.timelines[side].nsPerPixel)}: ${leadingWords(source, overview, row, at)}`;
      return;
    }
    const found = await source.json('section', { ...(row.foreign ? { view: row.view } : {}), track: row.track, at });
    const names = new Map(overview.tracks.map((track) => [track.track, track]));
    const nameOfTrack = (/** @type {number} */ track) => (names.has(track) ? trackLabel(names.get(track)) : `thread ${track}`);
    const lines = found ? shortLines(found, row.label, nameOfTrack) : [`${row.label}: nothing`];
    this.said.replaceChildren(`${SIDES[side]}: ${lines.join('; ')} `, found && viewer ? element('a', { href: viewer(found.start - (found.end - found.start), found.end + (found.end - found.start)), target: '_blank' }, 'open in its viewer') : '');
  }
}

/** Aligned parts of one name together, where all of them are on the page; null for one instance each. @param {any} alignment */
function regionsTable(alignment) {
  /** @type {Map<string, {name: string, count: number, before: number, after: number}>} */
  const byName = new Map();
  for (const { name, before, after } of alignment.parts) {
    const row = byName.get(name) || { name, count: 0, before: 0, after: 0 };
    row.count++;
    row.before += before[1] - before[0];
    row.after += after[1] - after[0];
    byName.set(name, row);
  }
  const change = (row) => row.after - row.before;
  const rows = [...byName.values()].sort((a, b) => Math.abs(change(b)) - Math.abs(change(a)));
  if (alignment.paired > alignment.parts.length || rows.length === alignment.parts.length) return null;
  const largest = Math.max(1, ...rows.map((row) => Math.abs(change(row))));
  const words = (row) => changeWords({ ...row, difference: change(row), growth: row.before ? change(row) / row.before : null }, formatTime);
  return table('Aligned parts by name', [
    { title: 'part', cell: (row) => nameOf(row.name) }, { title: 'instances', number: true, value: (row) => row.count, cell: (row) => formatCount(row.count) },
    { title: 'change', number: true, ns: true, value: change, cell: words }, { title: '', cell: (row) => changeBar(change(row) / largest, words(row)) },
    timeColumn('before', (row) => row.before, formatTime), timeColumn('after', (row) => row.after, formatTime),
  ], rows, 10);
}

/** The parts that changed most. @param {any} alignment @param {(part: any) => void} onShow */
function partsTable(alignment, onShow) {
  const difference = (part) => (part.after[1] - part.after[0]) - (part.before[1] - part.before[0]);
  const rows = [...alignment.parts].sort((a, b) => Math.abs(difference(b)) - Math.abs(difference(a))).slice(0, 200);
  const time = (side) => (part) => part[side][1] - part[side][0];
  return table('Aligned parts that changed most', [
    { title: 'part', cell: (row) => (isPrinting() ? nameOf(row.name) : element('button', { type: 'button', class: 'link name', title: partWords(row), onclick: () => onShow(row) }, fitText(row.name, 120))) },
    timeColumn('began before at', (row) => row.before[0], formatTime), timeColumn('before', time('before'), formatTime), timeColumn('after', time('after'), formatTime), timeColumn('change', difference, formatTime),
    { title: 'growth', number: true, value: growthOf, cell: (row) => growthWords(row, 1) },
  ], rows, 6);
}

/** How the runs are aligned, in a sentence. @param {any} alignment */
function alignmentWords(alignment) {
  if (!alignment.by) return 'The runs have no parallel regions or MPI calls in common: times are aligned by their share of the run.';
  const [before, after] = alignment.counts;
  const left = alignment.paired - alignment.parts.length;
  const parts = alignment.by === 'parallel regions' ? 'parallel region' : 'call';
  return `Aligned by ${formatNumberOf(alignment.paired, parts)}${parts === 'call' ? ' of MPI' : ''} of the first process that both runs have in this order (of ${formatCount(before)} and ${formatCount(after)})${left > 0 ? `, of which the longest ${formatCount(alignment.parts.length)} are shown` : ''}. A band leads from a part before to the same part after: red is longer, blue shorter. Select one to see it in both runs.`;
}

/**
 * Fills the page with a comparison.
 * @param {HTMLElement} page
 * @param {any} comparison
 * @param {[ShownSide, ShownSide] | null} sides timelines, where both sides have one
 * @param {string} json
 */
function showComparison(page, comparison, sides, json) {
  const media = matchMedia('(prefers-color-scheme: dark)');
  const root = document.documentElement;
  const { difference } = comparison;
  const runs = /** @type {[number, number]} */ ([difference.before.runs, difference.after.runs]);
  const ofGroup = (group) => difference.rows.filter((row) => row.group === group);
  /** @type {{two: TwoTimelines | null, timeline: TimelineView | null}} */
  const shown = { two: null, timeline: null };
  const build = keepingFocus(page, () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : media.matches;
    const had = shown.two;
    const two = sides && new TwoTimelines(comparison, sides, dark);
    const theme = sides ? makeTheme(dark, sides[0].overview.states) : null;
    const capacity = Math.max(1, ...ofGroup('run').map((row) => Math.max(row.before, row.after)));
    const large = (rows) => rows.filter((row) => Math.max(row.before, row.after) >= capacity * LEAST_SHARE || row.certain);
    const tableOf = (group, caption, title) => {
      const rows = group === 'cause' || group === 'finding' ? large(ofGroup(group)) : ofGroup(group);
      return rows.length ? numbersTable(caption, title, rows, runs) : null;
    };
    const modes = element('select', { id: 'mode', 'aria-label': 'Alignment', title: 'how the run after follows the run before', onchange: (event) => two?.setMode(event.target.value) },
      element('option', { value: 'scale' }, 'same scale: a pixel is the same time in both'), element('option', { value: 'parts' }, 'same parts: both show the same part of the run'));
    const caption = (side) => element('h3', {}, `${SIDES[side]}: ${fitText(String(comparison.shown[side].trace), 100)} `, sides?.[side].viewer && !isPrinting() ? element('a', { href: sides[side].viewer(0, two.lengths[side]), target: '_blank' }, 'its viewer') : '');
    const timelines = two && part('timelines', 'Timelines', legend(sides[0].overview.states, (name) => sides.some((side) => occursIn(side.overview, name)), theme, () => false),
      element('p', {}, modes, ' ', element('button', { type: 'button', id: 'whole', onclick: () => { two.mode = 'scale'; /** @type {HTMLSelectElement} */ (modes).value = 'scale'; two.show(0, Math.max(...two.lengths)); } }, 'whole runs')),
      caption(0), two.hosts[0], two.parts.length ? two.strip.canvas : '', caption(1), two.hosts[1], two.said, element('p', { class: 'note' }, alignmentWords(comparison.alignment)),
      regionsTable(comparison.alignment), comparison.alignment.parts.length ? partsTable(comparison.alignment, (row) => { two.strip.frame(row); two.hosts[0].scrollIntoView({ block: 'center' }); two.timelines[0].canvas.focus({ preventScroll: true }); }) : null);
    const { paths } = comparison;
    const size = paths && ['samples', 'tasks'].includes(paths.column) ? formatCount : formatTime;
    const flames = paths && part('call-paths', 'Call paths', element('p', { class: 'note' }, `${paths.column.replace(/_ns$/, '').replaceAll('_', ' ')} by call path: ${size(paths.totals[0])} before, ${size(paths.totals[1])} after. A bar is as wide as its larger side; its callees are below it. Select a bar to enlarge it, a bar above it to return.`,
      paths.left_out.some((value) => value > 0) ? ` Small paths are left out: ${size(paths.left_out[0])} before, ${size(paths.left_out[1])} after.` : ''), flameLegend(), flameDifference(paths, size));
    const sections = [whatWasCompared(comparison), efficiencyChange(ofGroup('efficiency')), part('causes', 'Causes', tableOf('run', 'The run', 'number'), tableOf('cause', 'Time by cause', 'cause'), tableOf('finding', 'Findings', 'finding')),
      timelines, tableOf('task_type', 'Mean task of a type', 'task type') ? part('task-types', 'Task types', tableOf('task_type', 'Mean task of a type', 'task type')) : null, flames,
      part('how', 'How it was computed', element('p', {}, 'Numbers are the means of the runs on each side; intervals are Welch\'s. Worker time of a cause is that of the report. ', saveButton(json, 'comparison.json', 'save the comparison as JSON')))].filter((made) => made);
    const titles = { what: 'What', efficiency: 'Efficiency', causes: 'Causes', timelines: 'Timelines', 'task-types': 'Task types', 'call-paths': 'Call paths', how: 'How' };
    const toggle = element('button', { type: 'button', id: 'theme', onclick: () => {
      root.dataset.theme = dark ? 'light' : 'dark';
      build();
    } }, dark ? 'light' : 'dark');
    page.replaceChildren(element('header', {}, element('h1', {}, 'taskscope comparison'), element('nav', { 'aria-label': 'Parts' }, ...sections.map((made) => element('a', { href: `#${made.id}` }, titles[made.id]))), toggle),
      difference.verdict ? element('p', { class: 'verdict' }, fitText(difference.verdict, 600)) : '', .../** @type {Node[]} */ (sections));
    if (two) {
      two.start();
      if (had) {
        two.mode = had.mode;
        /** @type {HTMLSelectElement} */ (modes).value = had.mode;
        two.timelines.forEach((timeline, side) => timeline.showAs(had.timelines[side].shown));
      }
      if (isPrinting()) two.print();
    }
    shown.two = two;
    shown.timeline = two && two.timelines[0];
  });
  build();
  media.addEventListener('change', build);
  onPaper(build, build);
  let width = page.clientWidth;
  window.addEventListener('resize', () => {
    if (Math.abs(page.clientWidth - width) > 40) { width = page.clientWidth; build(); }
  });
  return shown;
}

/**
 * Shows the comparison of the page's element, with the timelines that are beside it, or that a server answers for.
 * @param {HTMLElement} page
 * @param {string} json
 */
export async function openComparison(page, json) {
  const comparison = readJson(json);
  const embedded = SIDES.map((side) => document.getElementById(side));
  /** @type {any} */
  let sides = null;
  if (embedded.every((made) => made)) sides = await Promise.all(embedded.map((made) => EmbeddedSource.read(/** @type {HTMLElement} */ (made))));
  else if (location.protocol !== 'file:' && comparison.shown.every((run) => run.trace)) {
    sides = await Promise.all(SIDES.map(async (side) => {
      const opened = await ServerSource.open(`${side}/api`);
      const viewer = (/** @type {number} */ from, /** @type {number} */ to) => `${side}/?token=${opened.source.token}#from=${Math.max(0, Math.round(from))}&to=${Math.round(to)}`;
      return { ...opened, viewer };
    }));
  }
  return showComparison(page, comparison, sides, json);
}

/** Whether workers were in a state. @param {any} overview @param {string} name */
function occursIn(overview, name) {
  // A server sends the states over time later than the report.
  const rows = (overview.report && overview.report.thread_states) || [];
  if (!overview.stack) return !rows.length || rows.some(({ states }) => states[name] > 0);
  const { data, states } = overview.stack;
  const number = overview.states.findIndex((state) => state.name === name);
  for (let at = number; at < data.length; at += states) if (data[at] > 0) return true;
  return false;
}
