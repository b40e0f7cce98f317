// Words on the timeline: names of rows, times of the ruler.

import { formatPoint, formatTime } from './format.js';
import { INDENT, RULER } from './rows.js';

/** The name of a row in so many pixels: a thread that has no room for it is its number and its own name. @param {import('./timeline.js').TimelineView} timeline @param {string} label @param {number} room */
function labelIn(timeline, label, room) {
  const short = label.replace(/^thread (?=\d)/, '');
  const whole = timeline.fitLabel(label, room);
  return whole === label || short === label ? whole : timeline.fitLabel(short, room);
}

/** Draws the names of rows, and the frame around the one that has the focus. @param {import('./timeline.js').TimelineView} timeline @param {import('./rows.js').Row[]} visible */
export function drawLabels(timeline, visible) {
  const { context, theme } = timeline;
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  for (const row of visible) {
    const y = RULER + row.y - timeline.scrollY;
    const header = row.kind === 'view' || row.kind === 'node' || row.kind === 'process';
    if (header) {
      context.fillStyle = theme.dark ? '#23272c' : '#eef0f2';
      context.fillRect(0, y, timeline.width, row.height);
    }
    if (timeline.rows[timeline.focusRow] === row) {
      context.strokeStyle = theme.marks.finding;
      context.lineWidth = 1.5;
      context.strokeRect(1, y + 0.5, timeline.width - 2, row.height - 1);
    }
    context.fillStyle = theme.text;
    context.textAlign = 'left';
    const sign = header ? (timeline.collapsed.has(row.key || '') ? '▸ ' : '▾ ') : '';
    const indent = row.kind === 'track' ? 18 : row.kind === 'process' ? 12 : INDENT;
    // Rows of numbers have a second line in their name's room.
    const middle = row.kind === 'counter' ? row.height / 2 - 5 : row.height / 2;
    context.fillText(labelIn(timeline, sign + row.label, (header ? timeline.width : timeline.gutter - 4) - indent), indent, y + middle + 0.5);
  }
  context.textBaseline = 'alphabetic';
}

/** Where the words of the selected range stand: what they are, their left and right end. @param {import('./timeline.js').TimelineView} timeline */
function selectedWords(timeline) {
  const { context, selection } = timeline;
  if (!selection) return null;
  const words = `selected ${formatTime(selection.to - selection.from)}`;
  context.font = 'bold 11px system-ui, sans-serif';
  const half = context.measureText(words).width / 2;
  const middle = (timeline.xOf(selection.from) + timeline.xOf(selection.to)) / 2;
  const x = Math.max(timeline.gutter + half, Math.min(timeline.width - half - 3, middle));
  return { words, left: x - half, right: x + half };
}

/** Draws the times above the rows, and how long the selected range is. @param {import('./timeline.js').TimelineView} timeline */
export function drawRuler(timeline) {
  const { context, theme } = timeline;
  context.fillStyle = theme.page;
  context.fillRect(0, 0, timeline.width, RULER);
  const least = timeline.nsPerPixel * 110;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least) || least;
  context.fillStyle = theme.text;
  context.textAlign = 'left';
  const selected = selectedWords(timeline);
  if (selected) context.fillText(selected.words, selected.left, 12);
  context.font = '11px system-ui, sans-serif';
  let end = timeline.gutter;
  for (let at = Math.ceil(timeline.from / step) * step; at <= timeline.from + timeline.span; at += step) {
    const x = timeline.xOf(at);
    context.fillRect(x, RULER - 6, 1, 6);
    const words = formatPoint(at, step);
    const wide = context.measureText(words).width;
    // At the right edge there may be room on the left; where there is none, the line stands alone.
    const left = x + 3 + wide <= timeline.width ? x + 3 : x - 3 - wide;
    const isCovered = selected && left < selected.right + 6 && left + wide + 6 > selected.left;
    if (left < end || isCovered) continue;
    context.fillText(words, left, 12);
    end = left + wide + 6;
  }
  context.fillText(formatTime(timeline.span), 6, 14);
}
