// The panel of a task type or a construct: its totals, its longest instances, and one instance after the other.

import { element } from './elements.js';
import { formatCount, formatNumberOf, formatStart, formatTime, fitText } from './format.js';
import { goToTask } from './panel.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/**
 * Shows a task type, with the instance at a time, or the one before or after the instance shown last, which is brought into sight.
 * @param {Viewer} viewer
 * @param {number} slot its row among the task types
 * @param {{at: number} | {number: number} | {step: 'next' | 'previous'}} question
 */
export async function showType(viewer, slot, question) {
  const isNewest = viewer.turnPanel();
  const last = viewer.type && viewer.type.slot === slot && viewer.type.facts.shown;
  const asked = 'step' in question
    ? (last ? { number: Math.max(1, last.number + (question.step === 'next' ? 1 : -1)) } : { at: Math.max(0, Math.floor(viewer.timeline.cursor)) })
    : question;
  const facts = await viewer.source.json('type', { slot, ...asked });
  if (!isNewest() || !facts) return;
  // After the last instance it stays.
  if (!facts.shown && last) facts.shown = last;
  // For the console and for tests, too.
  viewer.type = { slot, facts };
  drawType(viewer, slot, facts);
  if (facts.shown && !('at' in question)) viewer.timeline.reveal({ track: facts.shown.track, start: facts.shown.start, end: facts.shown.end });
  // The focus stays on the type, so that keys go on to the next instance.
  const row = viewer.timeline.rows.findIndex((other) => other.slot === slot);
  if (row >= 0) viewer.timeline.focusRow = row;
  viewer.timeline.redraw();
}

/** @param {Viewer} viewer @param {number} slot @param {any} facts */
function drawType(viewer, slot, facts) {
  const { name, tasks, shares, threads, sum_ns: sum, median_ns: median, longest, shown } = facts;
  const count = tasks + shares;
  const kinds = [...(tasks ? [formatNumberOf(tasks, 'task')] : []), ...(shares || !tasks ? [formatNumberOf(shares, 'share of a thread', 'shares of threads')] : [])].join(', ');
  const go = (words, id, question, isOff) => element('button', { type: 'button', id, disabled: isOff, onclick: () => showType(viewer, slot, question) }, words);
  const words = (one) => `${formatTime(one.ns)} at ${formatStart(one.start, one.end - one.start)}, ${viewer.trackName(one.track)}`;
  const task = shown && shown.task_ref;
  viewer.timeline.edges = [];
  viewer.panel.replaceChildren(element('h2', { id: 'type-title' }, fitText(name, 120)),
    viewer.facts([['instances', kinds], ['threads', formatCount(threads)], ['time in them', formatTime(sum)], ['mean', formatTime(count ? sum / count : 0)], ['median', formatTime(median)]]),
    element('p', {}, go('◂ previous', 'type-previous', { step: 'previous' }, !shown || shown.number <= 1), ' ', go('next ▸', 'type-next', { step: 'next' }, !shown || shown.number >= count), ' ',
      element('button', { type: 'button', id: 'type-highlight', onclick: () => viewer.highlightName(name) }, 'highlight')),
    shown ? element('p', { id: 'type-shown' }, `${formatCount(shown.number)} of ${formatCount(count)}: ${words(shown)} `, task ? element('button', { type: 'button', class: 'link', onclick: () => goToTask(viewer, task) }, fitText(task.name, 70)) : '') : element('p', { class: 'note' }, 'No instance began.'),
    ...(longest.length ? [element('h3', {}, 'Longest'), element('ol', { id: 'type-longest' }, ...longest.map((one) => element('li', {}, element('button', { type: 'button', class: 'link', onclick: () => showType(viewer, slot, { number: one.number }) }, words(one)), one.task_ref ? ` ${fitText(one.task_ref.name, 60)}` : '')))] : []));
  viewer.live.textContent = shown ? `${fitText(name, 100)}, ${formatCount(shown.number)} of ${formatCount(count)}, ${words(shown)}` : `${fitText(name, 100)}, no instance`;
}
