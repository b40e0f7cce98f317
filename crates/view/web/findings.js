// Findings: the largest as cards, the others as lines.

import { bar, codeText, element, number, part } from './elements.js';
import { fitText, formatNumberOf, formatPercent, formatPoint, formatTime, unitOf } from './format.js';
import { smallTimeline } from './charts.js';
import { isPrinting } from './paper.js';
import { trackLabel } from './rows.js';

/** Whether a finding is shown by itself: from a hundredth of the time on that findings are a part of. @param {any} finding @param {any} report */
export function isLarge(finding, report) {
  return Boolean(finding.hang) || finding.ns > 0 && finding.ns * 100 >= report.findings_base_ns;
}

/** The unit of findings, before its own: `worker-`. @param {any} report */
export function ownerOf(report) {
  const owners = { threads: 'thread-', cpus: 'CPU-', queues: 'queue-' };
  return owners[report.findings_of] ?? 'worker-';
}

/** Part of a worst instance beside it on both sides, in sight. */
export const SURROUNDINGS = 0.6;

/** The instance after this one, in the order of the findings; null if there is no other. @param {any[]} instances @param {any} instance */
export function nextInstance(instances, instance) {
  const next = instances[(instances.indexOf(instance) + 1) % instances.length];
  return next === undefined || next === instance ? null : next;
}

/** Cards of findings at most; further ones have a line each. */
const CARDS = 3;
/** Room for a card, pixels. */
const CARD = 400;

/**
 * The findings that matter as cards with share, advice and worst instance; further ones as lines.
 * @param {any} report
 * @param {any} overview
 * @param {any} theme
 * @param {number} width
 * @param {((instance: any, finding: any, from: HTMLElement) => void) | null} onShow brings an instance into sight; null without a timeline
 */
export function findings(report, overview, theme, width, onShow) {
  const base = report.findings_base_ns;
  if (!base) return null;
  const all = report.findings || [];
  const { unit, show } = unitOf(base), owner = ownerOf(report), whole = base === report.capacity_ns ? ' of capacity' : '';
  const large = all.filter((finding) => isLarge(finding, report)), small = all.filter((finding) => finding.ns > 0 && !isLarge(finding, report));
  const cards = large.slice(0, CARDS), further = large.slice(CARDS);
  const columns = Math.max(1, Math.min(cards.length, Math.floor(width / CARD)));
  const instanceOf = (finding) => (overview.instance_sections || []).find((row) => row.finding === finding.id);
  const showMe = (finding) => {
    const instance = instanceOf(finding);
    return instance && onShow && !isPrinting() ? element('button', { type: 'button', class: 'show', 'aria-label': `Show ${finding.id} in the overview`, onclick: (event) => onShow(instance, finding, event.currentTarget) }, 'show me') : null;
  };
  const amount = (finding) => element('span', {}, element('strong', {}, formatPercent(finding.ns, base)), whole, ' · ', number(`findings.${all.indexOf(finding)}.ns`, finding.ns, show), ` ${owner}${unit} · confidence ${finding.confidence}`);
  const title = (finding) => element('h3', {}, element('span', { class: 'id' }, finding.id), ' ', fitText(finding.text, 400));
  const place = (finding) => (finding.file ? element('span', { class: 'place' }, ` · ${fitText(String(finding.file), 200)}:${finding.line ?? '?'}`) : null);
  const advice = (finding) => [
    finding.try ? element('p', { class: 'advice' }, element('strong', {}, 'Try: '), ...codeText(finding.try, 600)) : null,
    finding.evidence ? element('p', { class: 'note advice' }, `Evidence: ${fitText(finding.evidence, 600)}`) : null,
  ];
  // Threads without states would be grey from end to end.
  const hasStates = ({ tracks }) => tracks.some(({ sections }) => sections.some(([, , state]) => !['unknown', 'not_started', 'ended'].includes(overview.states[state].name)));
  const picture = (instance) => (hasStates(instance) ? smallTimeline(instance, overview.states, theme, Math.floor(width / columns) - 44)
    : element('p', { class: 'note' }, `worst instance: ${formatTime(instance.end - instance.start)} at ${formatPoint(instance.start, (instance.end - instance.start) / 100)}, ${trackLabel(instance.tracks[0])}`));
  const card = (finding) => {
    const instance = instanceOf(finding);
    return element('li', { class: 'finding', id: finding.id }, title(finding),
      element('p', {}, amount(finding), place(finding)), bar(finding.ns / base, `${finding.id}: ${formatPercent(finding.ns, base)}`),
      ...advice(finding), instance ? picture(instance) : null, showMe(finding));
  };
  const line = (finding) => element('li', { class: 'finding', id: finding.id }, title(finding),
    element('p', {}, bar(finding.ns / base, `${finding.id}: ${formatPercent(finding.ns, base)}`), ' ', amount(finding), place(finding), ' ', showMe(finding)), ...advice(finding));
  const sum = small.reduce((ns, finding) => ns + finding.ns, 0);
  const list = (rows, made, name) => (rows.length ? element('ol', { class: name }, ...rows.map(made)) : null);
  const made = list(cards, card, 'findings cards');
  if (made) made.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  return part('findings', 'Findings', made || element('p', {}, 'No loss reaches 1 % of the time.'),
    further.length ? element('details', { class: 'further' }, element('summary', {}, `${formatNumberOf(further.length, 'further finding')} of 1 % or more`), list(further, line, 'findings lines')) : null,
    small.length ? element('details', { class: 'brief' }, element('summary', {}, `${formatNumberOf(small.length, 'smaller finding')}, together ${show(sum)} ${owner}${unit} (${formatPercent(sum, base)}${whole})`), list(small, line, 'findings lines')) : null);
}
