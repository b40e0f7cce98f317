// The panel: the run, an opened section, its task, an operation.

import { codeText, element, nameOf } from './elements.js';
import { formatCount, formatStart, formatTime, fitText, unitOf } from './format.js';
import { CODE, placeOf } from './rows.js';
import { SURROUNDINGS, isLarge, nextInstance, ownerOf } from './findings.js';
import { factsOfQueues, remarksOfQueues } from './device_tables.js';
import { showCode } from './code_panel.js';
import { blameLines, edgesOfSection, edgesOfTask, freeWords, isOfSamples, messageLines, operationFacts, remarkLines, submissionLines, sectionTitle, threadWaitLines, valueWords } from './details.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/** @param {Viewer} viewer @param {import('./rows.js').Row} row @param {number} at */
export async function openSection(viewer, row, at) {
  const isNewest = viewer.turnPanel();
  const found = await viewer.source.json('section', { ...placeOf(row), at });
  if (!isNewest()) return;
  // Between its waits a thread without states is there all the same; of code by samples the answer has the reason.
  const isGap = row.isThread && (!found || (found.value === 0 && !isOfSamples(found)));
  if (!found || isGap) {
    const life = isGap && await viewer.source.json('section', { track: row.thread, at });
    if (isNewest()) tellNothing(viewer, row, at, Boolean(life));
    return;
  }
  viewer.timeline.marked = found;
  viewer.timeline.edges = [];
  viewer.timeline.redraw();
  if (isOfSamples(found)) showCode(viewer, found);
  else if (found.view === 'devices') showOperation(viewer, found);
  else if (found.view) await showValue(viewer, found, row, at, isNewest);
  else await showSection(viewer, found, isNewest);
}

/** Says that a row has nothing at a time. @param {Viewer} viewer @param {import('./rows.js').Row} row @param {number} at @param {boolean} isThere whether its thread is there, in no recorded wait */
function tellNothing(viewer, row, at, isThere) {
  const when = formatStart(at, viewer.timeline.nsPerPixel * 100);
  const words = isThere && row.view === CODE ? `${row.label}: no sample stands for the time at ${when}` : isThere ? `${row.label}: in no recorded wait at ${when}; it runs, or is blocked in a call that is not recorded` : `${row.label}: nothing at ${when}${row.foreign && row.view !== 'nested' ? '' : ' (not started, or ended)'}`;
  viewer.live.textContent = words;
  viewer.panel.replaceChildren(element('p', { id: 'nothing' }, words));
}

/** @param {Viewer} viewer @param {any} found */
export function showOperation(viewer, found) {
  const submitter = found.submitter === null ? String(found.thread || '–') : viewer.trackName(found.submitter);
  viewer.panel.replaceChildren(element('h2', { id: 'section-title' }, fitText(found.label, 120)),
    factList(viewer, [['kind', found.kind], ['from', formatStart(found.start, found.end - found.start)], ['lasts', formatTime(found.end - found.start)], ['submitted by', submitter],
      ['submitted at', found.submitted === null ? '–' : formatStart(found.submitted, found.end - found.start)], ...operationFacts(found)]),
    element('button', { type: 'button', onclick: () => viewer.timeline.select(found.start, found.end) }, 'select its time'));
  if (found.submitter !== null && found.submitted !== null) {
    viewer.timeline.edges = [{ kind: 'submission', fromTrack: found.submitter, from: found.submitted, toView: 'devices', toTrack: found.track, to: found.start, critical: false }];
    viewer.timeline.redraw();
  }
  viewer.live.textContent = fitText(`${found.kind} ${found.label}, ${formatTime(found.end - found.start)}`, 300);
}

/** @param {Viewer} viewer @param {any} found @param {import('./rows.js').Row} row @param {number} at @param {() => boolean} isNewest */
async function showValue(viewer, found, row, at, isNewest) {
  const section = typeof row.thread === 'number' ? await viewer.source.json('section', { track: row.thread, at }) : null;
  if (!isNewest()) return;
  // A thread without recorded states has one section, from its begin to its end, which explains nothing.
  const isKnown = section && section.state !== 'unknown';
  if (isKnown) await showSection(viewer, section, isNewest);
  else viewer.panel.replaceChildren();
  if (!isNewest()) return;
  const isNested = found.view === 'nested';
  const lines = isNested && !isKnown ? threadWaitLines(found.thread_wait, (track) => viewer.trackName(track)) : [];
  viewer.panel.prepend(element('h2', { id: 'value-title' }, isNested ? valueWords(found) : found.title),
    factList(viewer, [isNested ? ['of', found.title] : ['value', nameOf(valueWords(found))], ['row', row.label], ['from', formatStart(found.start, found.end - found.start)], ['lasts', formatTime(found.end - found.start)]]),
    ...(lines.length ? [element('ul', {}, ...lines.map((line) => element('li', {}, line)))] : []),
    ...(isKnown ? [] : [element('button', { type: 'button', onclick: () => viewer.timeline.select(found.start, found.end) }, 'select its time (m)')]));
  if (lines.length) {
    viewer.timeline.edges = edgesOfSection({ ...found, track: found.thread });
    viewer.timeline.redraw();
  }
  viewer.live.textContent = `${found.title}: ${valueWords(found)}, ${formatTime(found.end - found.start)}`;
}

/** @param {Viewer} viewer @param {any} found @param {() => boolean} isNewest */
export async function showSection(viewer, found, isNewest) {
  const [lasts, name] = [found.end - found.start, (track) => viewer.trackName(track)];
  const facts = [['state', found.label], ...(found.place && found.place !== found.label ? [['where', nameOf(found.place)]] : []), ...(found.line && !found.place.includes(found.line) ? [['line', nameOf(found.line)]] : []), ['thread', threadWords(viewer, found.track)], ['from', formatStart(found.start, lasts)], ['lasts', formatTime(lasts)],
    ...(found.call_bytes ? [['bytes', formatCount(found.call_bytes)]] : []), ...(found.region_name ? [['region', found.region_name]] : [])];
  const list = (words) => (words.length ? element('ul', {}, ...words.map((line) => element('li', {}, line))) : '');
  const [messages, submissions] = [messageLines(found, name), submissionLines(found)];
  const listed = (id, title, lines) => (lines.length ? element('div', { id }, element('h3', {}, title), list(lines)) : '');
  const select = element('button', { type: 'button', onclick: () => viewer.timeline.select(found.start, found.end) }, 'select its time (m)');
  const source = found.line ? element('button', { type: 'button', id: 'its-source', onclick: () => viewer.showSource() }, 'source (c)') : '';
  viewer.panel.replaceChildren(element('h2', { id: 'section-title' }, fitText(sectionTitle(found), 120)), factList(viewer, facts),
    list([...blameLines(found, name), ...remarkLines(found)]), listed('messages', 'Messages', messages), listed('submissions', 'Submitted to devices', submissions), select, ' ', source);
  viewer.timeline.edges = edgesOfSection(found);
  viewer.timeline.redraw();
  if (found.task_ref) await showTask(viewer, found.task_ref, false, isNewest);
  if (!isNewest()) return;
  viewer.live.textContent = fitText(`${found.label}${found.place ? ` ${found.place}` : ''}, ${formatTime(found.end - found.start)}`, 300);
}

/** A thread with the rank of its process. @param {Viewer} viewer @param {number} track */
function threadWords(viewer, track) {
  const own = viewer.names.get(track);
  const rank = own && viewer.overview.processes[own.process].rank;
  return typeof rank === 'number' ? `rank ${rank}, ${viewer.trackName(track)}` : viewer.trackName(track);
}

/** @param {Viewer} viewer */
export function factList(viewer, rows) {
  return element('dl', { class: 'facts' }, ...rows.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
}

/** What is known of a task. @param {Viewer} viewer @param {import('./source.js').TaskRef} ref */
export async function askTask(viewer, ref) {
  const query = { task: ref.number, pid: ref.pid, at: ref.at };
  return viewer.source.json('task', Object.fromEntries(Object.entries(query).filter(([, value]) => value !== null)));
}

/** @param {Viewer} viewer @param {import('./source.js').TaskRef} ref @param {boolean} alone @param {() => boolean} isNewest */
export async function showTask(viewer, ref, alone = true, isNewest = viewer.turnPanel()) {
  const task = await askTask(viewer, ref);
  if (!isNewest()) return;
  viewer.task = task;
  const lasts = task.ended !== null && task.began !== null ? task.ended - task.began : 100;
  const time = (ns) => (ns === null ? 'not known' : formatStart(ns, lasts));
  const go = (other, label = '') => element('button', { type: 'button', class: 'link', onclick: () => goToTask(viewer, other) }, fitText(`${other.name}${label}`, 90));
  const list = (title, edges, count) => (count === 0 ? null : element('div', {}, element('h4', {}, `${title}: ${formatCount(count)}`),
    element('ul', {}, ...edges.slice(0, 12).map((edge) => element('li', {}, go(edge.task_ref), ` ${fitText(edge.type, 60)}, at ${edge.address}`)))));
  const critical = task.critical_predecessor;
  const made = element('div', { class: 'task', id: 'task' }, alone ? element('h2', {}, fitText(`${task.short_type}, ${task.task_ref.name}`, 120)) : element('h3', {}, fitText(task.task_ref.name, 70)),
    factList(viewer, [['type', fitText(task.type, 100)], ...(task.line && !task.type.includes(task.line) ? [['line', task.line]] : []), ...(task.status === 'ended' ? [] : [['status', task.status]]),
      ...(task.parent_ref === null ? [] : [['parent', go(task.parent_ref)]])]),
    element('h3', {}, 'Why then?'), stepsOfTask(viewer, task, time, critical ? go(critical.task_ref, ` ${critical.short_type}`) : null),
    task.others_count === 0 ? null : element('div', {}, element('h4', {}, `others of this number: ${formatCount(task.others_count)}`),
      element('ul', {}, ...task.others.slice(0, 12).map((other) => element('li', {}, go(other), other.at === null ? '' : `, ${task.created === null ? 'from' : 'created at'} ${formatStart(other.at, lasts)}`)))),
    list('depends on', task.predecessors, task.predecessors_count), list('others depend on it', task.successors, task.successors_count));
  if (alone) {
    viewer.panel.replaceChildren(made);
    viewer.timeline.edges = [];
  } else viewer.panel.append(made);
  viewer.timeline.edges = [...viewer.timeline.edges, ...edgesOfTask(task)];
  viewer.timeline.redraw();
}

/**
 * A task from its creation to its end, each step with its length.
 * @param {Viewer} viewer
 * @param {any} task
 * @param {(ns: number | null) => string} time
 * @param {HTMLElement | null} critical the predecessor that ended last
 */
function stepsOfTask(viewer, task, time, critical) {
  const { created, began, ended, start } = task;
  const name = (track) => viewer.trackName(track);
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

/** @param {Viewer} viewer @param {import('./source.js').TaskRef} ref */
export async function goToTask(viewer, ref) {
  const isNewest = viewer.turnPanel();
  const task = await askTask(viewer, ref);
  if (task.runner !== null && task.began !== null) {
    const found = await viewer.source.json('section', { track: task.runner, at: task.began });
    if (!isNewest()) return;
    if (found) viewer.timeline.reveal(found);
  }
  await showTask(viewer, ref, true, isNewest);
}

/**
 * Frames the worst instance of a finding, says what is seen, explains its section, and offers the next finding.
 * @param {Viewer} viewer
 * @param {any} instance
 */
export async function showFinding(viewer, instance) {
  const { timeline, report } = viewer;
  const { start, end, track } = instance;
  const of = (row) => report.findings.find((known) => known.id === row.finding);
  const around = (end - start) * SURROUNDINGS;
  timeline.show(start - around, end + around);
  timeline.reveal(instance);
  const row = timeline.rowOf(track);
  if (row) await openSection(viewer, row, start);
  else viewer.turnPanel();
  // Of several sections all are framed.
  timeline.marked = instance;
  timeline.redraw();
  const finding = of(instance);
  const next = nextInstance(viewer.overview.instances.filter((other) => of(other) && isLarge(of(other), report)), instance);
  const { unit, show } = unitOf(report.findings_base_ns);
  const card = element('div', { id: 'framed', class: 'framed' }, element('h2', {}, `${finding.id}: worst instance`), element('p', {}, fitText(finding.text, 300), ' ', element('span', { class: 'loss' }, `${show(finding.ns)} ${ownerOf(report)}${unit}`)),
    element('p', {}, `Framed: ${formatTime(end - start)} at ${formatStart(start, end - start)}, ${threadWords(viewer, track)}.`), finding.try ? element('p', {}, 'Try: ', ...codeText(finding.try, 600)) : '',
    next ? element('button', { type: 'button', onclick: () => showFinding(viewer, next) }, `next: ${next.finding}`) : '', ' ', element('button', { type: 'button', onclick: () => { timeline.show(0, timeline.length); showRun(viewer); } }, 'all findings'));
  if (row) viewer.panel.prepend(card);
  else viewer.panel.replaceChildren(card);
  viewer.panel.scrollTop = 0;
  viewer.live.textContent = `${finding.id}, worst instance: ${formatTime(end - start)} on ${viewer.trackName(track)}`;
}

/** @param {Viewer} viewer */
export function showRun(viewer) {
  viewer.turnPanel();
  viewer.timeline.edges = [];
  viewer.timeline.redraw();
  const { unit, show } = unitOf(viewer.report.findings_base_ns);
  const rows = (viewer.report.findings || []).filter((row) => isLarge(row, viewer.report));
  const list = rows.map((row) => {
    const instance = viewer.overview.instances.find((other) => other.finding === row.id);
    return element('li', {}, element('strong', {}, row.id), ` ${fitText(row.text, 300)} `, element('span', { class: 'loss' }, `${show(row.ns)} ${ownerOf(viewer.report)}${unit}`), row.try ? element('p', {}, 'Try: ', ...codeText(row.try, 600)) : ' ',
      instance ? element('button', { type: 'button', class: 'link', 'aria-label': `Show ${row.id}`, onclick: () => showFinding(viewer, instance) }, 'show me') : null);
  });
  const queues = (viewer.report.devices && viewer.report.devices.queues) || [];
  const ofDevices = factsOfQueues(queues);
  // Of device queues alone there is nothing to say of threads.
  const ofThreads = viewer.report.threads > 0 || !queues.length;
  // A trace of device queues has no workers, of samples alone no states: how well their time was used is not known.
  const known = viewer.report.capacity_ns && !viewer.report.samples_alone;
  viewer.panel.replaceChildren(element('h2', {}, 'The run'),
    factList(viewer, [['trace', nameOf(viewer.report.trace)], [ofThreads ? 'wall time' : 'time of the queues', formatTime(viewer.report.wall_ns || viewer.overview.length_ns)],
      ...(ofThreads ? [...(viewer.report.samples_alone ? [['threads', formatCount(viewer.report.threads)]] : [['workers', formatCount(viewer.report.workers)]]), ['CPUs', viewer.report.cpus_text || 'not known'], ['tasks', formatCount(viewer.report.tasks)], ['events', formatCount(viewer.report.events)], ['lost events', formatCount(viewer.report.lost_events)]] : []),
      ...ofDevices, ...(ofThreads ? [['efficiency', known ? viewer.report.efficiency.parallel.toFixed(2) : 'not known']] : [])]),
    ...(viewer.report.verdict ? [element('p', {}, element('strong', {}, fitText(viewer.report.verdict, 600)))] : []),
    ...(list.length ? [element('h3', {}, 'Findings'), element('ol', { class: 'findings' }, ...list)] : []),
    ...remarksOfQueues(viewer.report).map((text) => element('p', { class: 'warn' }, text)),
    ...(viewer.report.notices || []).map((notice) => element('p', { class: 'warn' }, ...codeText(notice.text, 400))));
}

/** @param {Viewer} viewer */
export function showKeys(viewer) {
  viewer.turnPanel();
  const keys = [['+ − / w s', 'zoom'], ['← → / a d', 'pan'], ['↑ ↓', 'thread above, below'], ['PgUp PgDn', 'scroll'], ['Home', 'whole run'], [', .', 'previous, next section of the thread'],
    ['Enter', 'open the section at the cursor'], ['space', 'fold or unfold'], ['/', 'search'], ['n N', 'next, previous match'], ['h', 'highlight matches'], ['e', 'arrows of the visible part'], ['p', 'put the row on top, or back'], ['f', 'zoom to the selection, or to the opened section'], ['m', 'select the time of the opened section'], ['c', 'source of the opened section, or the file with most time'], ['b', 'notes, and a new one'], ['[ ]', 'less, more room for names of rows'], ['Esc', 'clear'],
    ['ctrl+wheel', 'zoom'], ['wheel, drag', 'scroll, pan'], ['shift+drag', 'select a range: measure, tables'], ['click', 'open a section and its task, or a task type'], ['pinch', 'zoom on a touch screen']];
  viewer.panel.replaceChildren(element('h2', {}, 'Keys'), factList(viewer, keys));
}
