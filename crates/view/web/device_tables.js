// The tables of device queues: their time, why they were idle, their operations, calls and waits of the host.

import { element, nameOf } from './elements.js';
import { fitText, formatCount, formatPercent, formatTime } from './format.js';
import { table, timeColumn } from './table.js';

/** Why a queue is idle: name in the report, words as in the terminal. @type {[string, string][]} */
const IDLE_CAUSES = [
  ['idle_host_bound', 'nothing is submitted'], ['idle_transfer_bound', 'the device copies'], ['idle_device_busy', 'other queues compute'],
  ['idle_dependency_bound', 'it waits for events or the driver'], ['idle_unknown', '(submissions were not recorded)'],
];

/** @param {any} row of a queue */
function idleOf(row) {
  return IDLE_CAUSES.reduce((sum, [name]) => sum + (row.time_ns[name] || 0), 0);
}

/** Why a queue was idle, most first, as shares of its time; shares below half a thousandth are left out. @param {any} row of a queue */
function idleWords(row) {
  const total = Object.values(row.time_ns).reduce((sum, ns) => sum + ns, 0);
  const causes = IDLE_CAUSES.map(([name, words]) => ({ words, ns: row.time_ns[name] || 0 })).filter(({ ns }) => ns > 0).sort((a, b) => b.ns - a.ns);
  return causes.filter(({ ns }, at) => at === 0 || ns * 2000 >= total).map(({ words, ns }) => `${words} ${formatPercent(ns, total)}`).join(', ');
}

/** What there is of device queues; nothing without any. @param {any[]} queues @returns {[string, string][]} */
export function factsOfQueues(queues) {
  if (!queues.length) return [];
  const devices = [...new Set(queues.map((queue) => queue.device).filter((name) => name))];
  const operations = queues.reduce((sum, queue) => sum + queue.operations, 0);
  return [...(devices.length ? [/** @type {[string, string]} */ (['devices', devices.map((name) => fitText(name, 60)).join(', ')])] : []), ['device queues', formatCount(queues.length)], ['device operations', formatCount(operations)]];
}

/** What was wrong with the delivery of device records, a sentence each. @param {any} report @returns {string[]} */
export function remarksOfQueues(report) {
  const queues = (report.devices && report.devices.queues) || [];
  return queues.flatMap((queue) => (queue.remarks || []).map((remark) => `${fitText(queue.name, 60)}: ${fitText(remark, 400)}`));
}

/** All tables of devices. @param {any} report @returns {HTMLElement[]} */
export function deviceTables(report, name = nameOf) {
  const { queues = [], calls = [], waits = [] } = report.devices || {};
  const made = [];
  if (queues.length) {
    made.push(table('Device queues', [
      { title: 'queue', cell: (row) => name(row.name) }, { title: 'device', cell: (row) => name(row.device) },
      { title: 'operations', number: true, value: (row) => row.operations, cell: (row) => formatCount(row.operations) }, timeColumn('span', (row) => row.span_ns, formatTime),
      timeColumn('kernels', (row) => row.time_ns.kernels, formatTime), timeColumn('transfers', (row) => row.time_ns.transfers, formatTime), timeColumn('idle', idleOf, formatTime),
      { title: 'idle because', cell: idleWords },
      timeColumn('mean time in the queue', (row) => (row.queueing_ns.operations ? Math.floor(row.queueing_ns.total / row.queueing_ns.operations) : null), formatTime),
      timeColumn('longest', (row) => (row.queueing_ns.operations ? row.queueing_ns.longest : null), formatTime),
    ], queues));
    const remarks = remarksOfQueues(report);
    if (remarks.length) made.push(element('ul', { class: 'notices', 'aria-label': 'Remarks on device queues' }, ...remarks.map((text) => element('li', {}, text))));
  }
  const operations = queues.flatMap((queue) => (queue.names || []).map((row) => ({ ...row, queue: queue.name })));
  if (operations.length) {
    made.push(table('Operations of device queues', [
      { title: 'queue', cell: (row) => name(row.queue) }, { title: 'operation', cell: (row) => name(row.name) },
      { title: 'count', number: true, value: (row) => row.operations, cell: (row) => formatCount(row.operations) }, timeColumn('time', (row) => row.time_ns, formatTime),
      { title: 'submitted', cell: (row) => name(row.submitted_by) },
    ], operations));
  }
  const callers = calls.filter((row) => row.calls > 0);
  if (callers.length) {
    made.push(table('Calls for devices', [
      { title: 'thread', cell: (row) => `${row.pid} / ${row.tid}` }, { title: 'calls', number: true, value: (row) => row.calls, cell: (row) => formatCount(row.calls) },
      timeColumn('submitting', (row) => row.submitting_ns, formatTime), timeColumn('waiting', (row) => row.waiting_ns, formatTime),
      timeColumn('other', (row) => row.other_ns, formatTime), timeColumn('overhead', (row) => row.overhead_ns, formatTime),
    ], callers));
  }
  if (waits.length) {
    made.push(table('Waits for devices', [
      { title: 'call', cell: (row) => name(row.call) }, { title: 'operation', cell: (row) => (row.operation ? name(row.operation) : 'nothing runs on the device') },
      { title: 'threads', number: true, value: (row) => row.threads, cell: (row) => formatCount(row.threads) }, timeColumn('time', (row) => row.time_ns, formatTime),
    ], waits));
  }
  return made;
}
