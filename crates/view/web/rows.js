// Rows of the timeline: which there are, one under the other, and what they are called.

import { fitText, formatNumberOf } from './format.js';

/** Room for labels at the left, and for the ruler above. */
export const GUTTER = 150;
export const RULER = 24;
/** Where names of rows begin that are no tracks. */
export const INDENT = 6;
/** Heights of rows of tracks, by name. @type {{[name: string]: number}} */
export const ROW_HEIGHTS = { compact: 16, normal: 22, tall: 36 };
/** Limits of the height at which all rows fit. */
const [LEAST_FITTING, MOST_FITTING] = [11, 60];
/** Heights of rows that are no tracks. */
const HEADER = 18;
const STACK = 34;
const COUNTER = 34;
const SHARE = 26;

/**
 * @typedef {{kind: 'node' | 'process' | 'view' | 'track' | 'counter' | 'stack', y: number, height: number, label: string,
 *   track?: number, view?: string, key?: string, tracks?: number[], counter?: string, slot?: number, foreign?: boolean, folds?: number, thread?: number | null, isThread?: boolean}} Row
 * A foreign row is no thread of the execution: a row of a model's view, of a device queue, or a level of nested sections. A row that can be
 * folded has how many `folds`. One that `isThread` is in the place of a thread without states.
 *
 * Views `isOfThreads` (device queues, nested sections) have rows that belong to threads. They are shown below their threads in the first view
 * of threads; those whose threads are not listed are in a group of their own.
 */

/** Text without what moves a cursor or turns the direction of writing. @param {string} text */
export const printable = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, '\ufffd');

/** The view of code by samples. */
export const CODE = 'code';

/** The views that are shown if no link says which: beside states code by samples if nothing else is known of threads, and device queues. @param {any} overview @param {any} report */
export function viewsAtFirst(overview, report) {
  const has = (/** @type {string} */ name) => overview.views.some((view) => view.name === name && view.rows.length);
  return ['state', ...(report.samples_alone && has(CODE) ? [CODE] : []), ...(has('devices') ? ['devices'] : [])];
}

/** What a thread or CPU is called. @param {{tid: number, name?: string, kind: string, role?: string | null, worker: boolean}} track */
export function trackLabel(track) {
  if (track.kind === 'cpu') return `CPU ${track.tid}`;
  const name = track.name ? ` ${printable(track.name)}` : '';
  if (track.role) return `thread ${track.tid}${name} (${track.role})`;
  return `thread ${track.tid}${name}${track.worker || track.kind === 'unknown' ? '' : ` (${track.kind})`}`;
}

/** What a process is called. @param {{pid: number, cpus: boolean, rank: number | null}} process */
function processLabel(process) {
  if (process.cpus) return 'CPUs';
  return `process ${process.pid}${typeof process.rank === 'number' ? ` (rank ${process.rank})` : ''}`;
}

/** What a row folds: these tracks. @param {number[]} tracks */
function foldsOf(tracks) {
  return { tracks, folds: tracks.length };
}

/** A row as the server knows it. @param {Row} row */
export function placeOf(row) {
  return row.foreign ? { view: row.view, track: row.track } : { track: row.track };
}

/** Orders of threads, by name. @type {{[name: string]: string}} */
export const ORDERS = { '': 'by process', workers: 'workers only', lost: 'most lost first', nth: 'n-th threads together' };

/** Which rows are shown: those whose names have all words, and the ones on top, by their keys in this order. @typedef {{words: string, top: string[], order: string}} Chosen */

/** The share of each worker's time that is not useful, by what names a thread in the report. @param {any} overview @returns {Map<string, number>} */
function lostShares(overview) {
  const isUseful = new Set(overview.states.filter(({ group }) => group === 'useful').map(({ name }) => name));
  const rows = (overview.report && overview.report.thread_states) || [];
  return new Map(rows.map(({ loom, pid, tid, kind, states }) => {
    const times = /** @type {[string, number][]} */ (Object.entries(states));
    const all = times.reduce((sum, [, ns]) => sum + ns, 0);
    const useful = times.reduce((sum, [name, ns]) => sum + (isUseful.has(name) ? ns : 0), 0);
    // Nodes may have the same numbers.
    return [`${loom}/${pid}/${tid}/${kind === 'cpu'}`, all ? 1 - useful / all : 0];
  }));
}

/**
 * Tracks in an order without groups, or null for groups by process.
 * @param {any} overview
 * @param {any[]} tracks
 * @param {string} order
 * @returns {any[] | null}
 */
function orderedTracks(overview, tracks, order) {
  const workers = tracks.some((track) => track.worker) ? tracks.filter((track) => track.worker) : tracks;
  if (order === 'workers') return workers;
  if (order === 'lost') {
    const lost = lostShares(overview);
    const of = (track) => {
      const { loom, pid } = overview.processes[track.process];
      return lost.get(`${loom}/${pid}/${track.tid}/${track.kind === 'cpu'}`) ?? 0;
    };
    return [...workers].sort((a, b) => of(b) - of(a));
  }
  if (order === 'nth') {
    const seen = new Map();
    const numbered = tracks.map((track) => {
      const number = seen.get(track.process) ?? 0;
      seen.set(track.process, number + 1);
      return { track, number };
    });
    return numbered.sort((a, b) => a.number - b.number).map(({ track }) => track);
  }
  return null;
}

/**
 * Threads of which the run has no state at all, as helper threads of libraries are: rows of them would be grey from end to end. None if there are
 * no other threads.
 * @param {any} overview
 * @returns {Set<number>}
 */
export function quietTracks(overview) {
  const before = QUIET.get(overview);
  if (before) return before;
  const rows = (overview.report && overview.report.thread_states) || [];
  const isQuiet = ({ states }) => Object.entries(states).every(([name, ns]) => ns === 0 || ['unknown', 'not_started', 'ended'].includes(name));
  const names = new Set(rows.filter(isQuiet).map(({ loom, pid, tid, kind }) => `${loom}/${pid}/${tid}/${kind === 'cpu'}`));
  const quiet = new Set(overview.tracks.filter((track) => {
    const { loom, pid } = overview.processes[track.process];
    return names.has(`${loom}/${pid}/${track.tid}/${track.kind === 'cpu'}`);
  }).map((track) => track.track));
  QUIET.set(overview, quiet);
  return quiet;
}

/** Known threads without states, by overview. @type {WeakMap<object, Set<number>>} */
const QUIET = new WeakMap();

/** The group of threads of a process without states. @param {{node: string, pid: number}} process */
const quietKey = (process) => `quiet ${process.node} ${process.pid}`;

/** Groups that are folded until somebody unfolds them. @param {any} overview @returns {Set<string>} */
export function foldedAtFirst(overview) {
  const quiet = quietTracks(overview);
  return new Set(overview.tracks.filter((track) => quiet.has(track.track)).map((track) => quietKey(overview.processes[track.process])));
}

/** What names a row of a track among the chosen ones. @param {Row} row */
export const rowKey = (row) => `${row.view}/${row.track}`;

/**
 * Puts rows one under the other: those on top; then views, in them nodes, processes, threads; then counters.
 * @param {any} overview
 * @param {string[]} views
 * @param {Set<string>} collapsed keys of groups that are folded
 * @param {number} rowHeight of a track
 * @param {Chosen} [chosen]
 * @returns {Row[]}
 */
export function rowsOf(overview, views, collapsed, rowHeight, chosen = { words: '', top: [], order: '' }) {
  /** @type {Row[]} */
  const rows = [];
  let y = 0;
  const add = (row) => { rows.push({ ...row, y }); y += row.height; };
  const { processes } = overview;
  const wanted = chosen.words.toLowerCase().split(/\s+/).filter((word) => word);
  const has = (/** @type {string} */ label) => wanted.every((word) => label.toLowerCase().includes(word));
  const ofThread = (track, view) => ({ kind: 'track', height: rowHeight, label: trackLabel(track), track: track.track, view });
  /** With its process in its name, as it is not among the threads of that. */
  const ofThreadAlone = (track, view) => {
    const row = ofThread(track, view);
    const { rank } = processes[track.process];
    if (processes.length === 1) return row;
    // Names are cut in their middle: the rank and the number of the thread stay.
    const label = typeof rank === 'number' ? `rank ${rank}, ${row.label.replace(/^thread /, '')}` : `${processLabel(processes[track.process])}, ${row.label}`;
    return { ...row, label };
  };
  const ofView = (row, view) => ({ kind: 'track', height: rowHeight, label: row.label, track: row.track, view: view.name, foreign: true, thread: row.thread });
  const trackOf = new Map(overview.tracks.map((track) => [track.track, track]));
  /** A row with its thread in its name, as it is not below that. */
  const ofViewAlone = (row, view) => {
    const own = ofView(row, view);
    const thread = view.isOfThreads && trackOf.get(row.thread);
    return thread ? { ...own, label: `${ofThreadAlone(thread, view.name).label}, ${row.label}` } : own;
  };
  const tracks = wanted.length ? overview.tracks.filter((track) => has(`${trackLabel(track)} ${processLabel(processes[track.process])} ${processes[track.process].node}`)) : overview.tracks;
  const nodes = [...new Set(tracks.map((track) => processes[track.process].node))];
  const quiet = quietTracks(overview);
  const workers = overview.tracks.filter((track) => track.worker);
  if ((workers.length ? workers : overview.tracks).some((track) => !quiet.has(track.track))) add({ kind: 'stack', height: STACK, label: 'workers by state', key: 'all', tracks: workers.map((track) => track.track) });
  /** @type {(key: string) => any[]} */
  const rowOnTop = (key) => {
    const at = key.lastIndexOf('/');
    const [view, track] = [key.slice(0, at), Number(key.slice(at + 1))];
    const own = overview.views.find((row) => row.name === view);
    const found = own && (own.rows || overview.tracks).find((row) => row.track === track);
    if (!found) return [];
    if (own.rows) return [ofViewAlone(found, own)];
    return [ofThreadAlone(found, view)];
  };
  const onTop = chosen.top.flatMap(rowOnTop);
  if (onTop.length) {
    add({ kind: 'view', height: HEADER, label: 'on top', key: 'top', folds: onTop.length });
    if (!collapsed.has('top')) onTop.forEach(add);
  }
  const known = views.flatMap((view) => overview.views.find((row) => row.name === view) || []);
  const ordered = orderedTracks(overview, tracks, chosen.order);
  const host = overview.tracks.length ? known.find((view) => !view.rows) : undefined;
  const bySamples = known.find((view) => view.isOfSamples && view.rows.length);
  /** Rows below threads, by thread. @type {Map<number, any[]>} */
  const below = new Map(host ? (ordered || tracks).map((track) => [track.track, []]) : []);
  for (const view of known.filter((view) => view.isOfThreads)) {
    for (const row of view.rows) below.get(row.thread)?.push({ ...ofView(row, view), label: `└ ${row.label}${row.submitters > 1 ? `, of ${row.submitters} threads` : ''}` });
  }
  const rowsBelow = (track, view) => (view === host?.name && below.get(track)) || [];
  /** A thread, and the rows below it. The first of these has the place and name of a thread without states. */
  const addThread = (row, view) => {
    const [first, ...others] = rowsBelow(row.track, view);
    if (first && view === 'state' && quiet.has(row.track)) add({ ...first, label: row.label, isThread: true });
    else [row, ...(first ? [first] : [])].forEach(add);
    others.forEach(add);
  };
  /** Whether a thread has neither states nor other rows, while other threads have. */
  const isEmpty = (track, view) => view === 'state' && quiet.has(track.track) && !rowsBelow(track.track, view).length && !wanted.length;
  const hasOthers = (/** @type {string} */ view) => tracks.some((track) => !isEmpty(track, view));
  for (const words of known) {
    const view = words.name;
    if (!words.rows && overview.tracks.length === 0) continue;
    const rest = words.isOfThreads ? words.rows.filter((row) => !below.has(row.thread)) : words.rows;
    if (words.isOfThreads && words.rows.length && !rest.length) continue;
    const own = rest ? rest.filter((row) => has(ofViewAlone(row, words).label)) : tracks;
    const all = (rest || overview.tracks).length;
    const hasStates = view !== 'state' || !tracks.length || tracks.some((track) => !quiet.has(track.track));
    add({ kind: 'view', height: HEADER, label: `${words.rows ? words.label : hasStates ? `threads: ${words.label}` : bySamples ? `threads: ${bySamples.label}` : 'threads'}${own.length < all ? ` (${own.length} of ${all} rows)` : ''}`, key: `view ${view}`, view, ...foldsOf(own.map((row) => row.track)) });
    if (collapsed.has(`view ${view}`)) continue;
    if (words.rows) {
      for (const row of own) add(ofViewAlone(row, words));
      continue;
    }
    if (ordered) {
      ordered.forEach((track) => addThread(ofThreadAlone(track, view), view));
      continue;
    }
    for (const node of nodes) {
      const ofNode = tracks.filter((track) => processes[track.process].node === node);
      const nodeKey = `${view} ${node}`;
      if (nodes.length > 1) add({ kind: 'node', height: HEADER, label: node, key: nodeKey, ...foldsOf(ofNode.map((track) => track.track)) });
      if (collapsed.has(nodeKey)) {
        add({ kind: 'stack', height: STACK, label: 'threads by state', key: nodeKey, tracks: ofNode.map((track) => track.track) });
        continue;
      }
      /** @type {Map<number, any[]>} */
      const ofProcesses = new Map();
      for (const track of ofNode) {
        const listed = ofProcesses.get(track.process);
        if (listed) listed.push(track);
        else ofProcesses.set(track.process, [track]);
      }
      for (const [process, own] of ofProcesses) {
        const key = `${view} ${node} ${processes[process].cpus ? 'CPUs' : processes[process].pid}`;
        const many = processes.length > 1;
        if (many) add({ kind: 'process', height: HEADER, label: processLabel(processes[process]), key, ...foldsOf(own.map((track) => track.track)) });
        if (many && collapsed.has(key)) {
          add({ kind: 'stack', height: STACK, label: 'threads by state', key, tracks: own.map((track) => track.track) });
          continue;
        }
        const empty = hasOthers(view) ? own.filter((track) => isEmpty(track, view)) : [];
        for (const track of own.filter((track) => !empty.length || !isEmpty(track, view))) addThread(ofThread(track, view), view);
        if (!empty.length) continue;
        const emptyKey = quietKey(processes[process]);
        add({ kind: 'process', height: HEADER, label: `${formatNumberOf(empty.length, 'thread')} without recorded states`, key: emptyKey, ...foldsOf(empty.map((track) => track.track)) });
        if (!collapsed.has(emptyKey)) for (const track of empty) addThread(ofThread(track, view), view);
      }
    }
  }
  const types = overview.task_types || [];
  if (types.length + overview.counters.length > 0) {
    add({ kind: 'view', height: HEADER, label: types.length ? 'tasks: threads that run each type; counters' : 'counters', key: 'tasks', folds: types.length + overview.counters.length });
    if (!collapsed.has('tasks')) {
      types.forEach((label, slot) => add({ kind: 'counter', height: SHARE, label: fitText(label, 60), slot }));
      for (const counter of overview.counters) add({ kind: 'counter', height: COUNTER, label: counter.label, counter: counter.name });
    }
  }
  return rows;
}

/**
 * The height of rows of tracks at which all rows fit into a room, if any does.
 * @param {Row[]} rows with tracks of no height
 * @param {number} room pixels
 */
export function fittingHeight(rows, room) {
  const others = rows.reduce((sum, row) => sum + row.height, 0);
  const tracks = rows.filter((row) => row.kind === 'track').length;
  return Math.max(LEAST_FITTING, Math.min(MOST_FITTING, Math.floor((room - others) / Math.max(1, tracks))));
}

/** The place of the row that holds a height. @param {Row[]} rows @param {number} at */
export function rowAtHeight(rows, at) {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].y + rows[middle].height <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Where a row of an earlier layout is now: the same one, else one of the same thread, else one of its kind; -1 where there is none.
 * @param {Row[]} rows
 * @param {Row} had
 */
export function placeNow(rows, had) {
  const alike = (/** @type {Row} */ row) => row.kind === had.kind && row.track === had.track && row.label === had.label;
  const tests = [(/** @type {Row} */ row) => alike(row) && row.view === had.view, alike, (/** @type {Row} */ row) => row.kind === had.kind];
  return tests.map((test) => rows.findIndex(test)).find((at) => at >= 0) ?? -1;
}
