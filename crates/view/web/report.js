// The report, in the order of a reader's questions. Every number comes from the report's JSON.

import { NAME, bar, codeText, element, nameOf, number, part } from './elements.js';
import { formatCount, formatDate, formatNumberOf, formatPercent, formatPoint, formatTime, fitText, shellWord, unitOf } from './format.js';
import { icicle, legend, stackChart } from './charts.js';
import { SURROUNDINGS, findings, nextInstance } from './findings.js';
import { cssColour, makeTheme, orderedColour } from './palette.js';
import { isPrinting, keepingFocus, onPaper } from './paper.js';
import { factsOfQueues } from './device_tables.js';
import { communicationMatrix } from './matrix.js';
import { tables, waitsTable } from './report_tables.js';
import { csvOf, table, timeColumn } from './table.js';
import { trackLabel, viewsAtFirst } from './rows.js';
import { TimelineView } from './timeline.js';

/** Pictures of the timeline that are printed at most, of about 50 threads each. */
const PICTURES_ON_PAPER = 6;
/** The verdict, above everything else. @param {any} report */
function verdict(report) {
  return report.verdict ? element('p', { class: 'verdict' }, fitText(report.verdict, 600)) : '';
}

/** @param {Record<string, string>} settings */
function settingsText(settings) {
  return fitText(Object.entries(settings).map(([name, value]) => `${name}=${value}`).join(' '), 1000);
}

/** @param {any} report @param {any} overview */
function whatRan(report, overview) {
  const command = report.command ? (Array.isArray(report.command) ? report.command.join(' ') : report.command) : report.trace;
  const queues = (report.devices && report.devices.queues) || [];
  const lostOperations = queues.reduce((sum, queue) => sum + queue.lost, 0);
  const isWhole = report.complete && !report.lost_events && !lostOperations;
  const complete = isWhole ? 'complete' : report.complete && !report.lost_events ? 'ended properly, but records of device operations are missing' : report.complete ? 'ended properly, but events were lost' : 'not complete: see the notices';
  const facts = [
    ['trace', nameOf(report.trace)],
    ...(report.part ? [['part of it', element('span', { class: 'warn' }, `${fitText(String(report.part), 300)}; points in time count from its begin`)]] : []),
    ...(report.host ? [['host', nameOf(report.host.name || (typeof report.host === 'string' ? report.host : JSON.stringify(report.host)))]] : []),
    ...(report.launcher ? [['launcher', nameOf(report.launcher)]] : []),
    ...(report.settings && Object.keys(report.settings).length ? [['settings', settingsText(report.settings)]] : []),
    ...(report.start_unix_ns ? [['started', formatDate(report.start_unix_ns)]] : []),
    // Device queues have a time of their own.
    report.wall_ns || overview.length_ns <= 1 ? ['wall time', number('wall_ns', report.wall_ns, formatTime)] : ['time of the queues', formatTime(overview.length_ns)],
    // Of device queues alone there is nothing to say of threads.
    ...(report.threads || !queues.length ? [
      // Which threads work, samples do not show.
      ...(report.samples_alone ? [] : [['workers', number('workers', report.workers, formatCount)]]),
      ['threads', number('threads', report.threads, formatCount)],
      ...(report.cpus_text ? [['CPUs', report.cpus_text]] : []),
      ['processes', number('processes', report.processes, formatCount)],
      ...(report.samples_alone ? [] : [['tasks', number('tasks', report.tasks, formatCount)]]),
      ['events', number('events', report.events, formatCount)],
      ['lost events', number('lost_events', report.lost_events, formatCount)],
    ] : factsOfQueues(queues)),
    ...(lostOperations ? [['lost device operations', formatCount(lostOperations)]] : []),
    ['clocks', overview.clocks],
    ['recording', element('span', { class: isWhole ? '' : 'warn' }, complete)],
    ...(report.recording_cost_ns_per_event ? [['recording cost', element('span', {}, number('recording_cost_ns_per_event', report.recording_cost_ns_per_event, (v) => v.toFixed(1)), ' ns an event')]] : []),
    ...(report.signal ? [['ended', `by signal ${report.signal}`]] : (report.exit_code ?? null) === null ? [] : [['ended', `exit code ${report.exit_code}`]]),
  ];
  const notices = (report.notices || []).map((notice) => element('li', {}, element('code', {}, fitText(notice.name, 60)), ' ', ...codeText(notice.text, 600)));
  return part('what', 'What ran',
    element('p', { class: 'command' }, fitText(command || '', 600)),
    element('dl', { class: 'facts' }, ...facts.flatMap(([name, value]) => [element('dt', {}, /** @type {string} */ (name)), element('dd', {}, value)])),
    notices.length ? element('ul', { class: 'notices', 'aria-label': 'Notices' }, ...notices) : null);
}

/** What stands in the place of numbers that have no meaning in a trace of device queues alone, or of a single event. */
const NO_WORKER_TIME = 'The trace has no worker time, so its efficiency is not known.';

const SAMPLES_ALONE = 'No events of OpenMP, MPI or tasks were recorded, so the efficiency is not known. Samples of call stacks, if any, are in the call paths.';

/** @param {any} report */
export function efficiencyTree(report) {
  if (!report.capacity_ns) return part('efficiency', 'Efficiency', element('p', {}, NO_WORKER_TIME));
  if (report.cpu_time) {
    const { used_ns: used, capacity_ns: capacity } = report.cpu_time, { unit, show } = unitOf(capacity);
    return part('efficiency', 'Efficiency', element('p', {}, 'Threads used ', number('cpu_time.used_ns', used, show), ' of ', number('cpu_time.capacity_ns', capacity, show),
      ` CPU-${unit} (${formatPercent(used, capacity)}). The findings are the rest.`));
  }
  if (report.samples_alone) return part('efficiency', 'Efficiency', element('p', {}, SAMPLES_ALONE));
  const e = report.efficiency || {};
  const { unit, show } = unitOf(report.capacity_ns);
  /** @type {any[][]} */
  const rows = [
    ['Parallel efficiency', 'parallel', null, 0], ...(e.cpu_availability_loss_ns > 0 ? [['CPU availability', 'cpu_availability', 'cpu_availability_loss_ns', 1]] : []), ['Load balance', 'load_balance', 'load_balance_loss_ns', 1],
    ['Serialization', 'serialization', 'serialization_loss_ns', 1], ...(e.device_offload_loss_ns > 0 ? [['Device offload', 'device_offload', 'device_offload_loss_ns', 1]] : []),
    ...(e.blocked_loss_ns > 0 ? [['Blocked', 'blocked', 'blocked_loss_ns', 1]] : []), ['Runtime overhead', 'runtime_overhead', 'runtime_overhead_loss_ns', 1],
    ['Known', 'known', 'unknown_ns', 1],
  ];
  const largest = e.largest_loss;
  const lines = rows.filter((row) => e[row[1]] !== undefined).map(([label, key, loss, depth]) => element('li', { class: depth ? 'factor' : 'whole' },
    element('span', { class: 'label' }, label), number(`efficiency.${key}`, e[key], (v) => v.toFixed(2)), bar(e[key], `${label} ${e[key].toFixed(2)}`),
    loss ? element('span', { class: 'loss' }, number(`efficiency.${loss}`, e[loss], show), ` worker-${unit} lost`, largest?.factor === key ? element('strong', {}, ` ← largest loss${largest.findings.length ? `: ${largest.findings.join(', ')}` : ''}`) : null)
      : element('span', { class: 'loss' }, `${formatNumberOf(report.workers, 'worker')}, `, number('capacity_ns', report.capacity_ns, (v) => `${show(v)} worker-${unit} in all`))));
  return part('efficiency', 'Efficiency', element('ul', { class: 'tree' }, ...lines),
    e.mpi_start_ns > 0 ? element('p', { class: 'note' }, 'Not included: ', number('efficiency.mpi_start_ns', e.mpi_start_ns, show), ` worker-${unit} while ranks start or end MPI.`) : null,
    element('p', { class: 'note' }, 'Each factor is the part that remains after one kind of loss. Their product is the parallel efficiency: useful time / capacity. The losses and the useful time sum to the capacity.'));
}

/** Characters of a step of a call path; a longer one has all of it as its title. */
const STEP = 80;

/** How call paths are looked at; it stays when the page is built anew. */
const paths = { bottomUp: false, chosen: { path: /** @type {string[]} */ ([]) } };

/** @param {any} report @param {number} width of the page, pixels */
export function callPaths(report, width) {
  const known = report.call_paths && (report.call_paths.paths || report.call_paths);
  if (!Array.isArray(known) || known.length === 0) return null;
  const timed = known.some((row) => row.ns > 0);
  const rows = known.map((row) => ({ path: row.frames || row.path || [], ns: (timed ? row.ns : row.count ?? row.samples) || 0 }));
  const format = timed ? formatTime : formatCount;
  const chart = () => icicle(rows, paths.bottomUp, format, paths.chosen, width);
  const host = element('div', {}, chart());
  const other = () => (paths.bottomUp ? 'show callers above their callees (top-down)' : 'show functions above their callers (bottom-up)');
  const turn = element('button', { type: 'button', onclick: () => {
    paths.bottomUp = !paths.bottomUp;
    paths.chosen.path = [];
    host.replaceChildren(chart());
    turn.textContent = other();
  } }, other());
  const functions = report.call_paths.functions || [];
  const measured = ['samples', 'tasks'].includes(report.call_paths.sorted_by) ? formatCount : formatTime;
  // Of samples alone the threads are all there is.
  const shown = report.samples_alone ? { ...report.call_paths, other_threads_ns: 0 } : report.call_paths;
  const title = titleOf(shown, shown.sorted_by);
  const list = functions.length === 0 ? null : table('Functions, wherever they were called', [
    { title: 'function', cell: (row) => nameOf(row.name) }, { title: `own ${title}`, number: true, value: (row) => row.own, cell: (row) => measured(row.own) },
    { title: `${title} with callees`, number: true, value: (row) => row.total, cell: (row) => measured(row.total) },
    { title: 'place', cell: (row) => (row.file ? `${fitText(String(row.file), 80)}:${row.line ?? '?'}` : '') },
  ], functions);
  const notes = (report.call_paths.notes || []).map((note) => element('p', { class: 'note' }, fitText(String(note), 400)));
  return part('call-paths', 'Call paths', element('p', { class: 'note' }, `A bar is as wide as its ${title}, including blocked time and time without a CPU; its callees are below it.${isPrinting() ? '' : ' Select a bar to enlarge it, a bar above it to return.'}`), turn, host, ...(shown.top_down ? pathTables(shown) : []), list, ...notes);
}

/** @param {any} path @param {any} theme */
function criticalPath(path, theme) {
  if (path && path.not_computed) {
    return part('critical-path', 'Critical path', element('p', {}, `Not computed here, as ${path.not_computed}: `, element('code', {}, 'taskscope report --section path TRACE'), ' computes it.'));
  }
  if (!path || !Array.isArray(path.by_cause) || path.by_cause.length === 0) return null;
  const kinds = [...new Set(path.by_cause.map((row) => row.cause))];
  const colour = (kind) => (kind === 'work' ? theme.state[0] : cssColour(orderedColour(theme, kinds.indexOf(kind) + 1)));
  const strip = element('div', { class: 'strip', role: 'img', 'aria-label': 'Critical path' });
  const words = (name) => String(name).replaceAll('_', ' ');
  for (const step of path.steps || []) {
    const fill = element('span', { title: `${words(step.cause)}${step.name ? ` (${fitText(step.name, NAME)})` : ''}${step.task === null ? '' : `, task ${step.task}${step.task_process ? ` of ${step.task_process}` : ''}`}: ${formatTime(step.end_ns - step.begin_ns)}` });
    fill.style.left = `${((step.begin_ns - path.begin_ns) / Math.max(1, path.wall_ns)) * 100}%`;
    fill.style.width = `${((step.end_ns - step.begin_ns) / Math.max(1, path.wall_ns)) * 100}%`;
    fill.style.background = colour(step.cause);
    strip.append(fill);
  }
  const left = path.steps_in_all ? `The strip shows the ${formatCount(path.steps.length)} longest of ${formatCount(path.steps_in_all)} steps at their times; stripes stand for shorter ones.` : null;
  return part('critical-path', 'Critical path', strip, left && element('p', { class: 'note' }, left), table('What the critical path consists of', [
    { title: 'what', cell: (row) => { const swatch = element('span', { class: 'swatch' }); swatch.style.background = colour(row.cause); return element('span', {}, swatch, words(row.cause)); } },
    // The lock, call or operation first: within one task type these are what differs.
    { title: 'name (task type)', cell: (row) => nameOf(row.name && row.task_type ? `${row.name} (${row.task_type})` : row.name || row.task_type) },
    timeColumn('time on the path', (row) => row.ns, formatTime), { title: 'of the run', number: true, cell: (row) => formatPercent(row.ns, path.wall_ns) },
  ], path.by_cause), element('p', { class: 'note' }, `All work takes ${formatTime(path.work_ns)}; the longest chain of it ${formatTime(path.span_ns)}, so the work has a parallelism of ${Number(path.parallelism).toFixed(1)}.`));
}

/** @param {any} report @param {any} overview @param {string} json */
function howComputed(report, overview, json) {
  const save = saveButton(json);
  return part('how', 'How it was computed',
    report.samples_alone ? element('p', {}, 'The kernel has when threads ran, had no CPU and were blocked; samples of their stacks have the place. Each nanosecond of a thread has one of these activities and the path of the sample taken next, in the whole run and in each part. ',
      'Whether a thread that was blocked waited for others is not known.') : element('p', {}, 'Capacity is workers × the time from the first to the last event of their process. Every worker-nanosecond has exactly one state, so useful time and all losses sum to the capacity. ',
      'A wait is charged to the code that ran meanwhile: each working thread is charged an equal share. A wait for a lock is charged to its holder.'),
    element('p', {}, 'In the overview a pixel shows the state with most time in it, paler if that is a smaller part. Red on top: one of the few longest waits of its state, of four times the typical length, or twice that of all others. ',
      'Stripes: events were lost, or the state is uncertain. Dotted at the bottom: the operating system kept the thread off its CPU for an eighth of the pixel or more, or for a thousandth of the run at once.'),
    element('p', {}, `taskscope ${overview.version}, ${fitText(String(report.schema), 60)}; the page contains its data and opens no connection. `, save));
}

/** @param {any} matrix */
function matrixPart(matrix) {
  const made = communicationMatrix(matrix);
  return made && part('communication', 'Communication', made);
}

/** The title of a column of call paths; time of samples is not time of the ledger. @param {any} paths @param {string} column */
function titleOf(paths, column = 'time_ns') {
  const isOfSamples = ['time_ns', 'work_ns', 'runtime_ns', 'blocked_ns', 'out_of_cpu_ns'].includes(column);
  const name = column === 'out_of_cpu_ns' ? 'no CPU' : column.replace(/_ns$/, '').replaceAll('_', ' ');
  if (isOfSamples && paths.is_time_sampled) return `${name} (samples)`;
  return isOfSamples && paths.other_threads_ns > 0 ? `${name} (all threads)` : name;
}

/** Rows of the views of call paths: symptom and cause beside each other. @param {any} paths */
function pathTables(paths) {
  const time = (row, column) => (row[column] ? formatTime(row[column]) : '');
  const main = paths.sorted_by;
  const counts = main === 'samples' || main === 'tasks';
  const size = (value) => (counts ? formatCount(value) : formatTime(value));
  const title = titleOf(paths, main);
  const hasEstimate = Object.keys(paths.run_totals || {}).some((name) => name.startsWith('no_cpu.'));
  // A column without a number says nothing.
  const beside = [[titleOf(paths, 'blocked_ns'), 'blocked_ns'], [titleOf(paths, 'out_of_cpu_ns'), 'out_of_cpu_ns'],
    [hasEstimate ? 'waiting, estimated no CPU included (symptom)' : 'waiting (symptom)', 'waiting_ns'], ['blame (cause)', 'blame_ns'], ['idleness (cause)', 'idleness_ns']];
  const tree = (caption, rows, isTopDown) => table(caption, [
    { title: isTopDown ? 'path' : 'function, its callers below', cell: (row) => {
      const name = element('span', { class: row.hot ? 'step hot' : 'step', 'data-depth': row.depth, title: row.name.length > STEP ? row.name.slice(0, 2000) : null }, `${row.hot ? '▸ ' : ''}${fitText(row.name, STEP)}${(row.what === 'function' || row.state) && row.file ? `  (${row.file.split('/').pop()}:${row.line})` : ''}`);
      name.style.setProperty('--depth', String(Math.min(row.depth, 30)));
      return name;
    } },
    { title: isTopDown ? `${title} with callees` : `own ${title}`, number: true, value: (row) => row[main] || 0, cell: (row) => (row[main] ? size(row[main]) : '') },
    ...(isTopDown ? [{ title: `own ${title}`, number: true, value: (row) => row.own, cell: (row) => (row.own ? size(row.own) : '') }] : []),
    ...beside.filter(([, column]) => rows.some((row) => row[column] > 0)).map(([title, column]) => ({ title, number: true, value: (row) => row[column] || 0, cell: (row) => time(row, column) })),
  ], rows, 25, { isTree: true });
  const flat = (caption, name, rows) => (rows.length === 0 ? null : table(caption, [
    { title: name, cell: (row) => fitText(row.name, 100) }, { title: `own ${title}`, number: true, value: (row) => row.own, cell: (row) => size(row.own) },
    { title: `${title} with callees`, number: true, value: (row) => row.total, cell: (row) => (row.total === null ? '' : size(row.total)) },
  ], rows));
  // Paper has the tree once.
  if (isPrinting()) return [tree('Top-down', paths.top_down, true), element('p', { class: 'note' }, 'Not printed: the tables bottom-up, of loops and of lines.')];
  return [tree('Top-down', paths.top_down, true), tree('Bottom-up', paths.bottom_up, false), flat('Loops', 'loop', paths.loops), flat('Lines', 'line', paths.lines)];
}

/**
 * Fills the page with the call paths of a profile, which has no timeline.
 * @param {HTMLElement} page
 * @param {any} report
 * @param {string} json
 */
export function showProfile(page, report, json) {
  const build = () => page.replaceChildren(element('header', {}, element('h1', {}, 'taskscope profile')), verdict(report),
    part('what', 'What ran', element('p', { class: 'command' }, nameOf(report.trace)), stateTotals(report.call_paths?.run_totals || {})),
    findings(report, {}, null, 600, null),
    ...[waitsTable(report)].filter((made) => made !== null).map((made) => part('waits', 'Waits', made)),
    callPaths(report, page.clientWidth) || element('p', {}, 'The profile has no call paths.'),
    part('how', 'The same as JSON', element('p', {}, `${fitText(String(report.schema), 60)}; the page contains its data and opens no connection. `, saveButton(json))));
  build();
  onPaper(build, build);
}

/** Where the workers' time went, by the sums of a profile. @param {{[name: string]: number}} totals */
function stateTotals(totals) {
  const states = Object.entries(totals).filter(([name, ns]) => name.startsWith('state.') && ns > 0).sort((a, b) => b[1] - a[1]);
  const capacity = states.reduce((sum, [, ns]) => sum + ns, 0);
  return states.length === 0 ? null : table('Worker time by state', [
    { title: 'state', cell: ([name]) => name.slice('state.'.length).replaceAll('_', ' ') },
    timeColumn('worker time', ([, ns]) => ns, formatTime), { title: 'share', number: true, cell: ([, ns]) => formatPercent(ns, capacity) },
  ], states, 30);
}

/** A button that saves the embedded document. @param {string} json @param {string} [file] @param {string} [words] */
export function saveButton(json, file = 'report.json', words = 'save the report as JSON') {
  return element('button', { type: 'button', onclick: () => {
    const link = /** @type {HTMLAnchorElement} */ (element('a', { download: file }));
    link.href = URL.createObjectURL(new Blob([json], { type: 'application/json' }));
    link.click();
  } }, words);
}

/**
 * What the file knows of a row at a time.
 * @param {any} source
 * @param {any} overview
 * @param {import('./rows.js').Row} row
 * @param {number} at
 */
export function leadingWords(source, overview, row, at) {
  const found = source.leadingAt(row.view, row.track, at);
  if (!found) return 'omitted from this file';
  if (found.state === 255 || (row.foreign && found.value === 0)) return 'nothing';
  const { values } = row.foreign ? overview.views.find((view) => view.name === row.view) : { values: [] };
  const [, name] = values.find(([value]) => value === found.value) || [0, String(found.value)];
  // What is short is kept where most is nothing.
  const share = found.isAlone ? '' : row.foreign && found.state === 0 ? 'mostly nothing, shortly ' : 'mostly ';
  return `${share}${row.foreign ? fitText(name, NAME) : overview.states[found.state].label}`;
}

/**
 * Brings the worst instance of a finding into sight, says what is seen, and offers the next finding. The focus goes there; Escape leads back to where
 * it came from.
 * @param {TimelineView} timeline
 * @param {HTMLElement} framed receives the words
 * @param {any} report
 * @param {any} overview
 * @param {any} instance
 * @param {any} finding
 * @param {HTMLElement} from
 */
function frame(timeline, framed, report, overview, instance, finding, from) {
  const { start, end } = instance, [track] = instance.tracks;
  timeline.show(start - (end - start) * SURROUNDINGS, end + (end - start) * SURROUNDINGS);
  timeline.select(start, end);
  timeline.cursor = start;
  const row = timeline.rowOf(track.track);
  if (row) {
    timeline.focusRow = timeline.rows.indexOf(row);
    timeline.scroll(row.y - timeline.scrollY - timeline.height / 3);
  }
  timeline.redraw();
  const others = overview.instance_sections.filter((other) => report.findings.some((known) => known.id === other.finding));
  const next = nextInstance(others, instance);
  const nextFinding = next && report.findings.find((known) => known.id === next.finding);
  const leave = (/** @type {HTMLElement} */ to) => {
    timeline.clearSelection();
    timeline.show(0, timeline.length);
    framed.hidden = true;
    to.focus();
  };
  const whole = element('button', { type: 'button', onclick: () => leave(timeline.canvas) }, 'whole run');
  framed.onkeydown = (event) => { if (event.key === 'Escape') leave(from.isConnected ? from : timeline.canvas); };
  framed.hidden = false;
  framed.replaceChildren(element('strong', {}, finding.id), ` ${fitText(finding.text, 300)}. Selected: its worst instance, ${formatTime(end - start)} at ${formatPoint(start, (end - start) / 100)}, ${trackLabel(track)}${row ? '' : ', which is omitted here'}. `,
    !next ? '' : element('button', { type: 'button', onclick: () => frame(timeline, framed, report, overview, next, nextFinding, from) }, `next: ${next.finding}`), ' ', whole);
  framed.scrollIntoView({ block: 'start' });
  framed.querySelector('button')?.focus({ preventScroll: true });
}

/**
 * Fills the page with the report.
 * @param {HTMLElement} page
 * @param {any} report
 * @param {any} overview
 * @param {any} source
 * @param {string} json
 */
export function showReport(page, report, overview, source, json) {
  const media = matchMedia('(prefers-color-scheme: dark)');
  /** @type {any} */
  const shown = { timeline: null, csvOf };
  const root = document.documentElement;
  const live = element('p', { id: 'live', 'aria-live': 'polite', class: 'hidden' });
  const build = keepingFocus(page, () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : media.matches;
    const theme = makeTheme(dark, overview.states);
    const width = Math.max(300, Math.min(1600, page.clientWidth - 8));
    const host = element('div', { class: 'timeline-host' });
    const values = element('div', {});
    const folded = element('p', { class: 'note', id: 'folded', hidden: true }, 'Folded groups are approximate here: of each thread, the file has only the leading state of a bucket and its share; the rest is empty. The viewer shows them exactly.');
    const occurs = new Set((report.thread_states || []).flatMap((row) => Object.keys(row.states)));
    const rows = overview.rows;
    const framed = element('p', { id: 'framed', role: 'status', hidden: true });
    const overviewPart = part('overview', 'Overview', legend(overview.states, (name) => occurs.has(name) && !(report.samples_alone && name === 'unknown'), theme), framed, values, host, folded,
      element('p', { class: 'note' }, `${formatNumberOf(rows.buckets, 'bucket')} of ${formatTime(2 ** rows.level)} a row; wheel scrolls, ctrl+wheel zooms, drag pans, shift+drag measures. `,
        rows.left_out_tracks ? `Omitted here: ${formatNumberOf(rows.left_out_tracks, 'thread')}. ` : '', 'For every detail: ', element('code', {}, `taskscope view ${report.trace ? shellWord(String(report.trace)) : 'TRACE'}`)));
    const menu = [['what', 'What ran'], ['efficiency', 'Efficiency'], ['findings', 'Findings'], ['overview', 'Overview'], ['tables', 'Tables'], ['communication', 'Communication'], ['call-paths', 'Call paths'], ['breakdown', 'Breakdown'], ['critical-path', 'Critical path'], ['how', 'How']];
    const sections = [
      whatRan(report, overview), efficiencyTree(report), findings(report, overview, theme, width, (instance, finding, from) => frame(shown.timeline, framed, report, overview, instance, finding, from)), overviewPart, tables(report, overview, theme), matrixPart(overview.matrix),
      callPaths(report, width), !report.capacity_ns || report.samples_alone ? null : part('breakdown', 'Breakdown over time', stackChart(overview.stack, overview.states, theme, width, overview.length_ns)),
      criticalPath(overview.critical_path, theme), howComputed(report, overview, json),
    ].filter((made) => made !== null);
    const links = menu.filter(([id]) => sections.some((made) => made.id === id)).map(([id, title]) => element('a', { href: `#${id}` }, title));
    const toggle = element('button', { type: 'button', id: 'theme', onclick: () => {
      root.dataset.theme = dark ? 'light' : 'dark';
      build();
    } }, dark ? 'light' : 'dark');
    const left = overview.left_out ? element('p', { class: 'warn' }, `Omitted to keep this file small: ${formatNumberOf(overview.left_out, 'row')} of long tables; report --json has all of them.`) : null;
    const before = shown.timeline && shown.timeline.shown;
    const wordsOf = (row, at) => `at ${formatPoint(at, shown.timeline.nsPerPixel)}: ${leadingWords(source, overview, row, at)}`;
    page.replaceChildren(element('header', {}, element('h1', {}, 'taskscope report'), element('nav', { 'aria-label': 'Parts' }, ...links), toggle), verdict(report), left || '', .../** @type {Node[]} */ (sections), live);
    shown.timeline = new TimelineView(host, { ...overview, report }, source, {
      onHover: (row, at) => { host.title = `${row.label} ${wordsOf(row, at)}`; },
      onWords: (row, { words, start, end }) => { host.title = `${row.label} at ${formatPoint(start, shown.timeline.nsPerPixel)}: ${words} (in ${formatTime(end - start)})`; },
      onLeave: () => { host.title = ''; },
      // Words on what is selected go with the selection.
      onSelect: (range) => { if (!range) framed.hidden = true; },
      // The row shows what is at the cursor: nothing opens here.
      onSay: (text, row) => {
        const { cursor, from, span } = shown.timeline;
        live.textContent = row.kind === 'track' && cursor >= from && cursor <= from + span ? `${text} ${wordsOf(row, cursor)}` : text;
      },
      onDrawn: () => {
        values.replaceChildren(...shown.timeline.valueLegends());
        folded.hidden = !shown.timeline.rows.some((row) => row.kind === 'stack' && row.key !== 'all');
      },
    }, { height: isPrinting() ? 900 : 520 });
    shown.timeline.setViews([...viewsAtFirst(overview, report), ...(overview.nested ? ['nested'] : [])]);
    shown.timeline.setTheme(dark);
    // What is shown stays through another size, other colours and paper.
    if (before) shown.timeline.showAs(before);
    else shown.timeline.resize();
    if (isPrinting()) {
      const { pictures, left } = shown.timeline.picturesForPaper(PICTURES_ON_PAPER);
      host.replaceChildren(...pictures);
      if (left) host.append(element('p', { class: 'note' }, `Not printed: ${formatNumberOf(left, 'more row')}.`));
    }
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
