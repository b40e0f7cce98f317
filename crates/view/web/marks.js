// What lies over the rows: arrows between tasks, marks, the selected range, the cursor.

import { GUTTER, RULER } from './rows.js';

/** Lines between tasks: from where one ended or created to where the other began. @param {import('./timeline.js').TimelineView} timeline */
export function drawEdges(timeline) {
  const { context, theme } = timeline;
  context.save();
  context.beginPath();
  context.rect(GUTTER, RULER, timeline.plotWidth, timeline.height - RULER);
  context.clip();
  for (const edge of timeline.edges) {
    const [from, to] = [timeline.rowOf(edge.fromTrack), timeline.rowOfPlace({ track: edge.toTrack, view: edge.toView })];
    if (!from || !to) continue;
    const [x1, y1, x2, y2] = [timeline.xOf(edge.from), timeline.yOf(from), timeline.xOf(edge.to), timeline.yOf(to)];
    context.strokeStyle = edge.critical ? theme.marks.long : theme.text;
    context.lineWidth = edge.critical ? 2.5 : 1.2;
    context.setLineDash(edge.kind === 'creator' ? [5, 4] : []);
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
  context.restore();
}

/** The section that is marked, the selected range, the cursor. @param {import('./timeline.js').TimelineView} timeline */
export function drawMarks(timeline) {
  const { context, theme } = timeline;
  context.save();
  context.beginPath();
  context.rect(GUTTER, 0, timeline.plotWidth, timeline.height);
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
