// What is known of a section, a value or an operation, as lines and facts.

import { formatCount, formatStart, formatTime, fitText } from './format.js';

/** Whether an answer is of code by samples. @param {any} found */
export const isOfSamples = (found) => 'sample' in found && 'around' in found;

/**
 * Why a section waited and who made it.
 * @param {any} found
 * @param {(track: number) => string} trackName
 * @returns {string[]}
 */
export function blameLines(found, trackName) {
  const lines = [];
  if (found.object && !found.thread_wait) lines.push(`waits for ${fitText(found.object, 80)}`);
  lines.push(...threadWaitLines(found.thread_wait, trackName));
  if (found.peer) lines.push(`waits ${formatTime(found.peer.ns)} for ${found.peer.rank !== null ? `rank ${found.peer.rank}` : `process ${found.peer.pid}`}: ${found.peer.kind}`);
  for (const row of (found.holders || []).slice(0, 3)) lines.push(`held by ${trackName(row.track)} for ${formatTime(row.ns)} of it${row.place ? `: ${fitText(row.place, 70)}` : ''}`);
  for (const row of (found.culprits || []).slice(0, 3)) lines.push(`meanwhile ${row.threads} of ${found.workers} workers: ${row.state}${row.place ? `, ${fitText(row.place, 70)}` : ''}`);
  lines.push(...betweenLines(found.between_calls));
  if (found.ended_last) lines.push(`last to end before: ${found.ended_last.state}${found.ended_last.task_name ? ` (${fitText(found.ended_last.task_name, 70)})` : ''} on ${trackName(found.ended_last.track)}`);
  return lines;
}

/** Code between calls of MPI: the calls, and who waited for it. @param {any} between @returns {string[]} */
function betweenLines(between) {
  if (!between) return [];
  const { after, before, awaited_by: waits, waits: count } = between;
  const lines = [[after && `after ${fitText(after, 80)}`, before && `before ${fitText(before, 80)}`].filter((words) => words).join(', ')];
  for (const { rank, pid, place, ns } of waits) lines.push(`${rank === null ? `process ${pid}` : `rank ${rank}`} waits for it for ${formatTime(ns)}${place ? `: ${fitText(place, 80)}` : ''}`);
  if (count > waits.length) lines.push(`${formatCount(count - waits.length)} more waits for it`);
  return lines;
}

/**
 * Why a section need not be what was, by the name in the answer.
 * @type {Record<string, string>}
 */
const DOUBTS = {
  'stream-ends': 'the stream ends before the thread does',
  'does-not-fit': 'the event at the end contradicts the state before it',
  'clock-goes-back': 'the clock of the thread went back over this time',
  'cpu-shared': 'several threads run on this CPU at the same time',
};

/**
 * What else must be known of a section: what is missing, what is odd.
 * @param {any} found
 * @returns {string[]}
 */
export function remarkLines(found) {
  const lines = [];
  if (found.lost_events) lines.push(`${formatCount(found.lost_events)} events were lost here`);
  if (found.uncertain) lines.push(`uncertain: ${DOUBTS[found.uncertain] ?? found.uncertain}`);
  if (found.off_cpu_ns) lines.push(`off the CPU for ${found.off_cpu_estimated ? 'about ' : ''}${formatTime(found.off_cpu_ns)} of it${found.off_cpu_estimated ? ' (estimated from sums)' : ''}`);
  if (found.long_from_ns && found.end - found.start >= found.long_from_ns) lines.push('one of the longest of its kind');
  return lines;
}

/** A bar of code by samples, or a time beside bars, in words. @param {any} found */
export function codeTitle({ label, away, sample, start, end }) {
  if (label) return label;
  if (away) return `${away.is_blocked ? 'blocked' : 'no CPU'} for ${formatTime(away.end - away.start)}${sample && sample.path.length ? `, in ${sample.path[sample.path.length - 1].name}` : ''}`;
  return `no sample for ${formatTime(end - start)}`;
}

/** A value of a model's view in words. @param {any} found */
export function valueWords(found) {
  // Numbers of what a program tells of itself are given by the viewer, and mean nothing to anybody.
  if (found.view === 'nested' || String(found.view).startsWith('shown.')) return fitText(found.label, 90);
  if (found.label) return `${fitText(found.label, 90)} (${found.value})`;
  return found.value === 0 ? 'nothing' : String(found.value);
}

/**
 * A section, a value or an operation in a few lines.
 * @param {any} found
 * @param {string} rowLabel
 * @param {(track: number) => string} trackName
 * @returns {string[]}
 */
export function shortLines(found, rowLabel, trackName) {
  const when = `${formatTime(found.end - found.start)} from ${formatStart(found.start, found.end - found.start)} on, ${rowLabel}`;
  if (found.view === 'devices') return [`${fitText(found.label, 90)} (${found.kind})`, when, ...operationFacts(found).slice(0, 4).map(([name, value]) => `${name}: ${value}`)];
  if (isOfSamples(found)) {
    const callers = found.sample ? found.sample.path.slice(-4, -1).reverse().map(({ name }) => name) : [];
    return [fitText(codeTitle(found), 90), when, ...callers.map((name) => `called by ${fitText(name, 80)}`)];
  }
  if (found.view) return [`${found.title}: ${valueWords(found)}`, when, ...(found.uncertain ? ['uncertain, or a part of it'] : [])];
  const lines = [`${found.label}${found.place ? `: ${fitText(found.place, 90)}` : ''}`, when];
  if (found.call) lines.push(`MPI_${fitText(found.call, 60)}`);
  if (found.line) lines.push(fitText(found.line, 90));
  if (found.task_ref) lines.push(`${fitText(found.task_ref.name, 70)}${found.task_type ? ` of ${fitText(found.task_type, 70)}` : ''}${found.task_line ? `, ${fitText(found.task_line, 70)}` : ''}`);
  return [...lines, ...blameLines(found, trackName).slice(0, 4), ...remarkLines(found)];
}

/** Facts of an operation of a device queue. @param {any} found @returns {[string, string][]} */
export function operationFacts(found) {
  /** @type {[string, string][]} */
  const facts = [];
  if (found.waited_ns !== null) facts.push(['submitted before it began', formatTime(found.waited_ns)]);
  if (found.bytes > 0) facts.push(['bytes', `${formatCount(found.bytes)} (${(found.bytes / Math.max(1, found.end - found.start)).toPrecision(3)} GB/s)`]);
  facts.push(['queue', fitText(found.queue, 60)]);
  if (found.device) facts.push(['device', fitText(found.device, 80)]);
  facts.push(['number in the queue', formatCount(found.seq)]);
  if (found.late_by_ns > 0) facts.push(['its record was late by', formatTime(found.late_by_ns)]);
  if (found.anomalies.length) facts.push(['odd', found.anomalies.join(', ')]);
  return facts;
}

/** What a section is called, as its bar: its task, its call, its code, else its state. @param {any} found */
export function sectionTitle(found) {
  return found.state === 'task' && found.task_ref ? `${found.name}, ${found.task_ref.name}` : found.name;
}

/**
 * Messages of a call in words: partner, size, times, and the side that was late.
 * @param {any} found
 * @param {(track: number) => string} trackName
 * @returns {string[]}
 */
export function messageLines(found, trackName) {
  return (found.messages || []).map((message) => {
    const other = message.rank === null ? trackName(message.other) : `rank ${message.rank}`;
    const size = message.bytes === null ? '' : `, ${formatCount(message.bytes)} bytes`;
    const tag = message.tag === null ? '' : `, tag ${message.tag}`;
    const length = Math.max(1, message.received - message.sent);
    const wait = message.sent - message.posted;
    const late = wait > 0 ? `: sent ${formatTime(wait)} after its receive was posted` : wait < 0 ? `: its receive was posted ${formatTime(-wait)} after it was sent` : '';
    return `${message.is_sent ? 'to' : 'from'} ${other}${size}${tag}, sent at ${formatStart(message.sent, length)}, received at ${formatStart(message.received, length)}${late}`;
  });
}

/**
 * Who ended a wait of a thread, or held what it waited for.
 * @param {any} wait
 * @param {(track: number) => string} trackName
 * @returns {string[]}
 */
export function threadWaitLines(wait, trackName) {
  if (!wait) return [];
  const { waker, holders } = wait;
  const length = Math.max(1, wait.end - wait.start);
  const lines = [`waits ${formatTime(length)} for ${fitText(wait.object, 80)}${wait.call ? ` in ${fitText(wait.call, 80)}` : ''}${wait.outcome === 'done' ? '' : `: ${wait.outcome}`}`];
  if (waker) lines.push(`woken by ${trackName(waker.track)} at ${formatStart(waker.at, length)}${waker.call ? `, in ${fitText(waker.call, 80)}` : ''}`);
  // A thread may take an object again and again while another one waits for it.
  const groups = new Map();
  for (const { track, call, ns } of holders) {
    const key = `${track} ${call}`;
    const group = groups.get(key) || { track, call, ns: 0, times: 0 };
    groups.set(key, { ...group, ns: group.ns + ns, times: group.times + 1 });
  }
  for (const { track, call, ns, times } of [...groups.values()].sort((a, b) => b.ns - a.ns)) lines.push(`held by ${trackName(track)} for ${formatTime(ns)} of it${times > 1 ? `, ${formatCount(times)} times` : ''}${call ? `, since ${fitText(call, 80)}` : ''}`);
  return lines;
}

/** Operations of device queues that a section submitted, each in a line. @param {any} found @returns {string[]} */
export function submissionLines(found) {
  const { first, count } = found.submissions || { first: [], count: 0 };
  const lines = first.map(({ label, submitted, start, end }) => `${fitText(label, 80)}: began ${formatTime(start - submitted)} after its submission, took ${formatTime(end - start)}`);
  return count > first.length ? [...lines, `${formatCount(count - first.length)} more`] : lines;
}

/** Arrows of a section: messages, submissions, the thread that woke it or held its lock, the work that ended last before a wait did. @param {any} found */
export function edgesOfSection(found) {
  const edge = (kind, fromTrack, from, toTrack, to) => ({ kind, fromTrack, from, toTrack, to, critical: false });
  const edges = (found.messages || []).map((message) => (message.is_sent ? edge('message', found.track, message.sent, message.other, message.received) : edge('message', message.other, message.sent, found.track, message.received)));
  for (const { row, submitted, start } of (found.submissions || { first: [] }).first) edges.push({ ...edge('submission', found.track, submitted, row, start), toView: 'devices' });
  const wait = found.thread_wait;
  if (wait && wait.waker) edges.push(edge('wake', wait.waker.track, wait.waker.at, found.track, wait.end));
  else if (wait && wait.holders.length) edges.push(edge('wake', wait.holders.at(-1).track, wait.holders.at(-1).end, found.track, wait.end));
  else if (found.holders && found.holders.length) edges.push(edge('wake', found.holders[0].track, Math.min(found.holders[0].end, found.end), found.track, found.end));
  else if (found.ended_last) edges.push(edge('wake', found.ended_last.track, found.ended_last.end, found.track, found.end));
  return edges;
}

/** How long workers were free while a task was in the queue. @param {any} start @param {number} queued nanoseconds @param {(track: number) => string} trackName */
export function freeWords(start, queued, trackName) {
  if (queued === 0) return '';
  const busy = (start.busy || []).map(({ name, ns }) => `${(ns / queued).toFixed(2)} in ${fitText(name, 60)}`);
  if (start.without_cpu_ns * 200 >= queued) busy.push(`${(start.without_cpu_ns / queued).toFixed(2)} waiting without a CPU`);
  const inCode = busy.length ? `; of the others, on average, ${busy.join(', ')}` : '';
  if (!start.free.length) return `while none of ${formatCount(start.workers)} workers was free${busy.length ? `: on average ${busy.join(', ')}` : ''}`;
  const listed = start.free.map((row) => `${trackName(row.track)} for ${formatTime(row.ns)} (${row.state})`);
  return `with free workers: ${listed.join(', ')}; on average ${(start.free_ns / queued).toFixed(2)} of ${formatCount(start.workers)} workers${inCode}`;
}

/** Arrows of a task: creation, dependences, the critical one thick. @param {any} task */
export function edgesOfTask(task) {
  const edges = [];
  if (task.creator !== null && task.runner !== null && task.created !== null && task.began !== null) {
    edges.push({ kind: 'creator', fromTrack: task.creator, from: task.created, toTrack: task.runner, to: task.began, critical: false });
  }
  const same = (a, b) => a !== null && b !== null && a.task_ref.name === b.task_ref.name && a.task_ref.at === b.task_ref.at;
  const critical = task.critical_predecessor;
  for (const edge of task.predecessors) {
    if (edge.runner !== null && edge.ended !== null && task.began !== null) {
      edges.push({ kind: 'dependence', fromTrack: edge.runner, from: edge.ended, toTrack: task.runner, to: task.began, critical: same(edge, critical) });
    }
  }
  for (const edge of task.successors) {
    if (edge.runner !== null && edge.began !== null && task.ended !== null) {
      edges.push({ kind: 'dependence', fromTrack: task.runner, from: task.ended, toTrack: edge.runner, to: edge.began, critical: false });
    }
  }
  return edges;
}
