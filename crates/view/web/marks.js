// What lies over the rows: arrows between tasks, marks, the selected range, the cursor, flags of notes.

import { RULER } from './rows.js';

/** Pixels around the flag of a note where the pointer finds it. */
const NEAR_FLAG = 7;

/** Lines of what is opened, and of the visible part: between tasks, messages, wakes, submissions. @param {import('./timeline.js').TimelineView} timeline */
export function drawEdges(timeline) {
  const { context, theme } = timeline;
  context.save();
  context.beginPath();
  context.rect(timeline.gutter, RULER, timeline.plotWidth, timeline.height - RULER);
  context.clip();
  const colours = { message: theme.marks.finding, wake: theme.marks.match };
  const flows = new Set(timeline.flows);
  for (const edge of [...timeline.flows, ...timeline.edges]) {
    const [from, to] = [timeline.rowOf(edge.fromTrack), timeline.rowOfPlace({ track: edge.toTrack, view: edge.toView })];
    if (!from || !to) continue;
    const [x1, y1, x2, y2] = [timeline.xOf(edge.from), timeline.yOf(from), timeline.xOf(edge.to), timeline.yOf(to)];
    // Those of the whole visible part are thinner than those of what is opened.
    const isFlow = flows.has(edge);
    context.globalAlpha = isFlow ? 0.6 : 1;
    context.strokeStyle = edge.critical ? theme.marks.long : colours[edge.kind] || theme.text;
    context.lineWidth = edge.critical ? 2.5 : isFlow ? 0.8 : edge.kind in colours ? 1.8 : 1.2;
    context.setLineDash(['creator', 'submission'].includes(edge.kind) ? [5, 4] : []);
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1 + 24, y1, x2 - 24, y2, x2, y2);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = context.strokeStyle;
    context.beginPath();
    context.moveTo(x2, y2);
    context.lineTo(x2 - 7, y2 - 4);
    context.lineTo(x2 - 7, y2 + 4);
    context.fill();
  }
  context.globalAlpha = 1;
  context.restore();
}

/** The section that is marked, the selected range, the cursor. @param {import('./timeline.js').TimelineView} timeline */
export function drawMarks(timeline) {
  const { context, theme } = timeline;
  context.save();
  context.beginPath();
  context.rect(timeline.gutter, 0, timeline.plotWidth, timeline.height);
  context.clip();
  if (timeline.marked) {
    const row = timeline.rowOfPlace(timeline.marked);
    if (row) {
      const left = timeline.xOf(timeline.marked.start);
      context.strokeStyle = theme.marks.match;
      context.lineWidth = 2;
      context.strokeRect(left, RULER + row.y - timeline.scrollY, Math.max(3, timeline.xOf(timeline.marked.end) - left), row.height);
    }
  }
  if (timeline.selection) {
    const [left, right] = [timeline.xOf(timeline.selection.from), timeline.xOf(timeline.selection.to)];
    context.globalAlpha = 0.18;
    context.fillStyle = theme.marks.finding;
    context.fillRect(left, 0, right - left, timeline.height);
    context.globalAlpha = 1;
    context.fillRect(left - 0.5, 0, 1, timeline.height);
    context.fillRect(right - 0.5, 0, 1, timeline.height);
  }
  if (timeline.cursor >= timeline.from && timeline.cursor <= timeline.from + timeline.span) {
    context.fillStyle = theme.text;
    context.globalAlpha = 0.5;
    context.fillRect(timeline.xOf(timeline.cursor), RULER, 1, timeline.height);
  }
  context.restore();
}

/** Draws a flag above the rows at each note, and a line through them. @param {import('./timeline.js').TimelineView} timeline */
export function drawNotes(timeline) {
  const { context, theme } = timeline;
  context.fillStyle = theme.text;
  for (const { from_ns: at } of timeline.notes) {
    if (at < timeline.from || at > timeline.from + timeline.span) continue;
    const x = Math.round(timeline.xOf(at));
    context.fillRect(x, 0, 1, 20);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x + 8, 4);
    context.lineTo(x, 8);
    context.fill();
  }
}

/** The note whose flag is at a place above the rows. @param {import('./timeline.js').TimelineView} timeline @param {number} x @returns {import('./notes.js').Note | undefined} */
export function noteAt(timeline, x) {
  const distance = (note) => Math.abs(timeline.xOf(note.from_ns) + 3 - x);
  const isInSight = (note) => note.from_ns >= timeline.from && note.from_ns <= timeline.from + timeline.span;
  return timeline.notes.filter((note) => isInSight(note) && distance(note) <= NEAR_FLAG).sort((a, b) => distance(a) - distance(b))[0];
}
