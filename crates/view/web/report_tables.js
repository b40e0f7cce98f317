// The tables of the report: where the time went, calls, ranks, task types, waits, constructs, locks, queues, threads.

import { deviceTables } from './device_tables.js';
import { bar, colourAs, element, nameOf, part } from './elements.js';
import { fitText, formatCount, formatPercent, formatTime, unitOf } from './format.js';
import { histogram } from './charts.js';
import { printable } from './rows.js';
import { table, timeColumn } from './table.js';

/** The process of each row, where the rows are of several. @param {any[]} rows */
function processColumn(rows) {
  const several = new Set(rows.map((row) => row.pid)).size > 1;
  return several ? [{ title: 'process', number: true, cell: (row) => String(row.pid ?? '–') }] : [];
}

/** Ends of a chain of waits that say more than its threads, as in the terminal. @type {{[end: string]: string}} */
const ENDS = { 'no-cpu': 'had no CPU', handover: 'until it ran again', timeout: 'timeout of its caller', open: 'not over at the end', unknown: 'not known', unrecorded: 'in a call that is not recorded' };
/** Parts of waits that a row has. */
const WAIT_PARTS = 4;

/** A part of waits in words. @param {any} part */
function wordsOfPart(part) {
  const placeOf = (tied) => fitText(tied.where || 'code that is not known', 120);
  const roles = { holds: 'held by', wakes: 'until', joined: 'runs' };
  const words = [part.by, part.root].filter(Boolean).map((tied) => `${roles[tied.role]} ${placeOf(tied)}`);
  if (part.by && part.blocked) words.push(`in ${placeOf(part.blocked)}`);
  const end = ENDS[part.end] || (part.blocked ? '' : { sleep: 'its own doing', outside: 'a device, a peer or another process' }[part.end] || '');
  return [words.join(', '), end].filter(Boolean).join(': ');
}

/** What waits were for, most first, with shares. @param {any} row */
function partsOfWaits(row) {
  const parts = row.parts.slice(0, WAIT_PARTS).map((part) => `${wordsOfPart(part)} (${formatPercent(part.ns, row.waited_ns)})`);
  return parts.length ? parts.join('; ') : '–';
}

/** Waits between threads, of a trace or a profile; null without any. @param {any} report */
export function waitsTable(report, name = nameOf) {
  const rows = report.thread_waits || [];
  return rows.length === 0 ? null : table('Waits of threads for each other (all threads)', [
    { title: 'object', cell: (row) => name(row.object ? `${row.kind} ${row.object}` : row.kind) }, { title: 'place', cell: (row) => name(row.where) }, ...processColumn(rows),
    { title: 'waits', number: true, value: (row) => row.waits, cell: (row) => formatCount(row.waits) }, timeColumn('waited', (row) => row.waited_ns, formatTime),
    timeColumn('longest', (row) => row.longest_ns, formatTime),
    { title: 'for', wide: true, cell: (row) => partsOfWaits(row) },
  ], rows);
}

/** How long workers had no CPU, as in the terminal; empty below a hundredth of their time. @param {any} report @returns {string} */
function shortageWords(report) {
  const shortage = report.no_cpu;
  const capacity = Math.max(1, report.capacity_ns || 0);
  if (!shortage || Math.max(shortage.others_ns, shortage.waiting_ns) * 100 < capacity) return '';
  const share = (/** @type {number} */ ns) => formatPercent(ns, capacity);
  const stopped = shortage.stopped_ns ? ` (${share(shortage.stopped_ns)} while signals had stopped the process)` : '';
  return `Workers could run and had no CPU for ${share(shortage.own_ns + shortage.waiting_ns)} of the time${stopped}: ${share(shortage.own_ns)} lost, ${share(shortage.waiting_ns)} while they waited for others. ${share(shortage.others_ns)} more were lost by workers that waited until others got a CPU.`;
}

/** What the kernel did with threads: in the table of samples alone, in a split of a thread, in a row of call paths. @type {[string, string, (row: any) => number][]} */
const SPLITS = [
  ['running', 'running_ns', (row) => (row.work_ns || 0) + (row.runtime_ns || 0)], ['no CPU', 'no_cpu_ns', (row) => row.out_of_cpu_ns || 0],
  ['blocked', 'blocked_ns', (row) => row.blocked_ns || 0], ['not known', 'unknown_ns', () => 0],
];

/**
 * The time of all threads, if samples are all that is known of them: what the kernel recorded, and the function that most samples of it are in. Null
 * if it recorded nothing.
 * @param {any} report
 * @param {(text: any) => Node | string} name
 */
function sampledTime(report, name) {
  const splits = report.thread_splits || [];
  const sum = (/** @type {string} */ key) => splits.reduce((sum, row) => sum + row[key], 0);
  const total = sum('time_ns');
  if (total === 0) return null;
  const { unit, show } = unitOf(total);
  const functions = ((report.call_paths && report.call_paths.bottom_up) || []).filter((row) => row.depth === 0);
  const rows = SPLITS.map(([label, key, of]) => {
    const most = functions.reduce((most, row) => (of(row) > (most ? of(most) : 0) ? row : most), null);
    return { label, ns: sum(key), most: most && most.name };
  }).filter((row) => row.ns > 0).sort((a, b) => b.ns - a.ns);
  return table('Where the time of the threads went', [
    { title: 'state', cell: (row) => row.label }, timeColumn(`thread-${unit}`, (row) => row.ns, show), { title: 'share', number: true, cell: (row) => formatPercent(row.ns, total) },
    { title: '', cell: (row) => bar(row.ns / total, row.label) }, { title: 'most samples of it in', cell: (row) => (row.most ? name(row.most) : '–') },
  ], rows);
}

/** @param {any} report @param {any} overview @param {any} theme */
export function tables(report, overview, theme, name = nameOf) {
  const made = [];
  const states = Object.fromEntries(overview.states.map((state) => [state.name, state]));
  const label = (state) => (states[state] ? states[state].label : state);
  const colour = (wanted) => theme.state[overview.states.findIndex((state) => state.name === wanted)];
  const capacity = report.capacity_ns || 1;
  const { unit, show } = unitOf(capacity);
  // Of samples alone no state is known, and which threads work is not known.
  const isSampled = report.samples_alone;
  const ofSamples = isSampled ? sampledTime(report, name) : null;
  if (ofSamples) made.push(ofSamples);
  if (!isSampled && (report.causes || []).length) made.push(table('Where the time of the workers went', [
    { title: 'state', cell: (row) => label(row.state) }, { title: 'place', cell: (row) => name(row.where) },
    timeColumn(`worker-${unit}`, (row) => row.ns, show), { title: 'of capacity', number: true, cell: (row) => formatPercent(row.ns, capacity) },
    { title: '', cell: (row) => bar(row.ns / capacity, label(row.state), colour(row.state)) },
  ], report.causes));
  const shortage = isSampled ? '' : shortageWords(report);
  if (shortage) made.push(element('p', { class: 'note', id: 'no-cpu' }, shortage));
  if ((report.ranks || []).length) made.push(table('Ranks', [
    { title: 'rank', number: true, value: (row) => row.rank, cell: (row) => String(row.rank) }, { title: 'host', cell: (row) => name(row.host) }, { title: 'process', number: true, cell: (row) => String(row.pid) },
    { title: 'workers', number: true, value: (row) => row.workers, cell: (row) => formatCount(row.workers) },
    timeColumn('useful', (row) => row.useful_ns, formatTime), timeColumn('communication', (row) => row.communication_ns, formatTime), timeColumn('waiting for a rank (all threads)', (row) => row.peer_wait_ns, formatTime),
    ...(report.ranks.some((row) => row.mpi_start_ns > 0) ? [timeColumn('start and end of MPI', (row) => row.mpi_start_ns, formatTime)] : []),
    { title: 'efficiency', number: true, value: (row) => row.parallel_efficiency, cell: (row) => row.parallel_efficiency.toFixed(2) }, { title: '', cell: (row) => bar(row.parallel_efficiency, `rank ${row.rank}`) },
  ], report.ranks));
  if ((report.mpi_calls || []).length) made.push(table('Calls of MPI', [
    { title: 'call', cell: (row) => row.call }, { title: 'place', cell: (row) => name(row.where) },
    { title: 'calls', number: true, value: (row) => row.calls, cell: (row) => formatCount(row.calls) }, { title: 'bytes', number: true, value: (row) => row.bytes, cell: (row) => formatCount(row.bytes) },
    timeColumn('time in calls (all threads)', (row) => row.ns, formatTime), timeColumn('waiting for a rank (all threads)', (row) => row.wait_ns, formatTime),
    { title: 'waited for', wide: true, cell: (row) => row.waits.slice(0, 3).map((wait) => `${wait.rank === null ? `process ${wait.pid}` : `rank ${wait.rank}`} (${wait.kind}, ${formatTime(wait.ns)})`).join('; ') },
  ], report.mpi_calls));
  if ((report.task_types || []).length) {
    const rows = report.task_types.map((row, i) => ({ ...row, classes: (overview.histograms || [])[i] || [] }));
    made.push(table('Task types', [
      { title: 'task type', cell: (row) => name(row.name) }, ...processColumn(rows), { title: 'began', number: true, value: (row) => row.began, cell: (row) => formatCount(row.began) },
      timeColumn('in bodies (all threads)', (row) => row.body_ns, formatTime),
      ...(rows.some((row) => row.blocked_ns > 0) ? [timeColumn('blocked in them', (row) => row.blocked_ns, formatTime)] : []), timeColumn('mean', (row) => row.mean_ns, formatTime), timeColumn('median', (row) => row.median_ns, formatTime),
      timeColumn('95 %', (row) => row.p95_ns, formatTime), timeColumn('longest', (row) => row.max_ns, formatTime),
      { title: 'durations', cell: (row) => histogram(row.classes, theme) },
    ], rows));
  }
  const groups = Object.fromEntries(overview.states.map((state) => [state.name, state.group]));
  const byWait = new Map();
  for (const row of report.causes || []) {
    if (['sync', 'mutex', 'device', 'idle'].includes(groups[row.state])) byWait.set(row.state, (byWait.get(row.state) || 0) + row.ns);
  }
  const waited = [...byWait].sort((a, b) => b[1] - a[1]);
  if (waited.length) {
    made.push(table('Waits by cause', [
      { title: 'wait', cell: (row) => label(row[0]) }, timeColumn(`worker-${unit}`, (row) => row[1], show),
      { title: 'of capacity', number: true, cell: (row) => formatPercent(row[1], capacity) }, { title: '', cell: (row) => bar(row[1] / capacity, label(row[0]), colour(row[0])) },
    ], waited));
  }
  const waits = blameMatrix(report.blame || [], label, unitOf(capacity));
  if (waits) made.push(waits);
  for (const [key, caption] of [['worksharing', 'Worksharing constructs'], ['regions', 'Parallel constructs']]) {
    if ((report[key] || []).length === 0) continue;
    made.push(table(caption, [
      { title: 'construct', cell: (row) => name(row.name) }, ...processColumn(report[key]), { title: 'executions', number: true, value: (row) => row.executions, cell: (row) => formatCount(row.executions) },
      timeColumn('busy (useful or blocked)', (row) => row.busy_ns, formatTime), timeColumn('imbalance (threads × longest − busy)', (row) => row.imbalance_ns, formatTime),
      { title: 'load balance', number: true, cell: (row) => row.load_balance.toFixed(2) },
    ], report[key]));
  }
  if ((report.locks || []).length) {
    made.push(table('Locks and critical constructs', [
      { title: 'object', cell: (row) => name(row.object) }, ...processColumn(report.locks), { title: 'acquired', number: true, value: (row) => row.acquisitions, cell: (row) => formatCount(row.acquisitions) },
      timeColumn('held', (row) => row.held_ns, formatTime), timeColumn('longest hold', (row) => row.longest_hold_ns, formatTime),
      timeColumn('waited for', (row) => row.waited_ns, formatTime),
      { title: 'most by', cell: (row) => name(row.holders && row.holders[0] ? row.holders[0].where : null) },
    ], report.locks));
  }
  const waitsOfThreads = waitsTable(report, name);
  if (waitsOfThreads) made.push(waitsOfThreads);
  if (report.starvation) {
    made.push(table('Tasks that were able to run waited for', [
      { title: 'task type', cell: (row) => name(row.where) }, timeColumn('others waited', (row) => row.waited_ns, formatTime),
      { title: 'pieces', number: true, value: (row) => row.pieces, cell: (row) => formatCount(row.pieces) }, timeColumn('longest run', (row) => row.longest_ns, formatTime),
      { title: 'of task', number: true, cell: (row) => row.longest_task === null ? '–' : String(row.longest_task) },
    ], report.starvation.by));
  }
  made.push(...deviceTables(report, name));
  const useful = (row) => overview.states.reduce((sum, state) => sum + (state.group === 'useful' ? row.states[state.name] || 0 : 0), 0);
  const total = (row) => Object.values(row.states).reduce((sum, ns) => sum + ns, 0);
  // Of samples alone the next table has all that is known of threads, but for lost events.
  const hasLosses = (report.thread_states || []).some((row) => row.lost_events > 0);
  if ((report.thread_states || []).length && (!ofSamples || hasLosses)) made.push(table('Threads', [
    { title: 'thread', cell: (row) => row.kind === 'cpu' ? `CPU ${row.tid}` : `${row.pid} / ${row.tid}${row.name ? ` ${printable(row.name)}` : ''}${row.role ? ` (${row.role})` : row.worker || row.kind === 'unknown' ? '' : ` (${row.kind})`}` },
    { title: 'events', number: true, value: (row) => row.events, cell: (row) => formatCount(row.events) }, { title: 'lost', number: true, value: (row) => row.lost_events, cell: (row) => formatCount(row.lost_events) },
    ...(isSampled ? [] : [{ title: 'useful', number: true, cell: (row) => formatPercent(useful(row), total(row)) }]),
    ...(!ofSamples && report.thread_states.some((row) => row.off_cpu !== 'unknown') ? [
      { title: 'running (kernel)', number: true, cell: (row) => (row.off_cpu === 'unknown' ? '' : formatPercent(Math.max(0, row.last_ns - row.first_ns - row.runnable_ns - row.blocked_ns), row.last_ns - row.first_ns)) },
      { title: 'no CPU (kernel)', number: true, cell: (row) => (row.off_cpu === 'unknown' ? '' : formatPercent(row.runnable_ns, row.last_ns - row.first_ns)) },
      { title: 'blocked (kernel)', number: true, cell: (row) => (row.off_cpu === 'unknown' ? '' : formatPercent(row.blocked_ns, row.last_ns - row.first_ns)) },
    ] : []),
    ...(isSampled ? [] : [{ title: 'time by state', cell: (row) => stateBar(row.states, total(row), overview.states, theme) }]),
  ], report.thread_states));
  if ((report.thread_splits || []).length) made.push(table(ofSamples ? 'Threads' : 'Threads by their scheduling and waits', [
    { title: 'thread', cell: (row) => name(row.label) }, timeColumn('time', (row) => row.time_ns, formatTime), timeColumn('running', (row) => row.running_ns, formatTime),
    timeColumn('no CPU', (row) => row.no_cpu_ns, formatTime), timeColumn('blocked', (row) => row.blocked_ns, formatTime),
    ...(report.thread_splits.some((row) => row.unknown_ns > 0) ? [timeColumn('not known', (row) => row.unknown_ns, formatTime)] : []),
    ...(report.thread_splits.some((row) => Object.keys(row.waits || {}).length) ? [{ title: 'waits', cell: (row) => Object.entries(row.waits || {}).sort((a, b) => b[1] - a[1]).map(([kind, ns]) => `${kind} ${formatTime(ns)}`).join(', ') }] : []),
    { title: 'source', cell: (row) => (row.estimated ? 'estimated' : 'recorded') },
  ], report.thread_splits));
  return made.length ? part('tables', 'Tables', ...made) : null;
}

/** One bar of all states. */
function stateBar(times, total, states, theme) {
  const made = element('span', { class: 'bar states', role: 'img', 'aria-label': states.filter((s) => times[s.name]).map((s) => `${s.label} ${formatPercent(times[s.name], total)}`).join(', ') });
  states.forEach((state, number) => {
    const ns = times[state.name] || 0;
    if (ns === 0) return;
    const fill = element('span', { class: 'fill', title: `${state.label} ${formatPercent(ns, total)}` });
    fill.style.width = `${(ns / Math.max(1, total)) * 100}%`;
    colourAs(fill, theme.state[number]);
    made.append(fill);
  });
  return made;
}

/** Who made whom wait: culprits down, kinds of waiting across. */
function blameMatrix(blame, label, { unit, show }) {
  if (blame.length === 0) return null;
  const sum = (map, key, ns) => map.set(key, (map.get(key) || 0) + ns);
  const [waits, culprits, cells] = [new Map(), new Map(), new Map()];
  for (const row of blame) {
    const culprit = row.blamed === 'nobody' ? 'nobody: all waited' : row.blamed === 'holder' ? `holder of ${row.where || 'a lock'}` : `${label(row.blamed_state || row.blamed)}: ${row.where || '–'}`;
    sum(waits, row.state, row.ns);
    sum(culprits, culprit, row.ns);
    sum(cells, `${culprit}\n${row.state}`, row.ns);
  }
  const bySize = (map) => [...map.entries()].sort((a, b) => b[1] - a[1]);
  const across = bySize(waits).slice(0, 7);
  return table(`Who made whom wait (worker-${unit})`, [
    { title: 'culprit', cell: (row) => nameOf(row[0]) }, timeColumn('all', (row) => row[1], show),
    ...across.map(([wait]) => ({ title: label(wait), number: true, value: (row) => cells.get(`${row[0]}\n${wait}`) || 0, cell: (row) => (cells.has(`${row[0]}\n${wait}`) ? show(cells.get(`${row[0]}\n${wait}`)) : '') })),
  ], bySize(culprits));
}

