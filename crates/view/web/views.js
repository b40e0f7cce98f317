// Lists of views: which there are, which are shown, and what they are called.

import { element } from './elements.js';
import { formatCount, fitText } from './format.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/** The view of sections in sections. */
export const NESTED = 'nested';
/** Traces of more events are read for it only when it is chosen. */
const MAX_READ_EVENTS = 3_000_000;

/** Fills the lists of views: those of threads, then each family of the models' views. @param {Viewer} viewer */
export function fillViews(viewer) {
  const options = () => {
    const groups = new Map();
    for (const row of viewer.overview.views) {
      const family = row.family || 'threads: states, tasks, places';
      if (!groups.has(family)) groups.set(family, []);
      groups.get(family).push(element('option', { value: row.name }, fitText(row.label, 60)));
    }
    return [...groups].map(([family, rows]) => element('optgroup', { label: family }, ...rows));
  };
  viewer.view.replaceChildren(...options());
  viewer.second.replaceChildren(element('option', { value: '' }, 'add a view below'), ...options());
  if (viewer.timeline) showChosen(viewer);
}

/** Shows these views one below the other, each once. @param {Viewer} viewer @param {string[]} names */
export function setViews(viewer, names) {
  const shown = names.filter((name) => shownView(viewer, name));
  viewer.timeline.setViews([...new Set(names)]);
  if (shown.length) fillViews(viewer);
  showChosen(viewer);
  viewer.drawLegend();
  loadShown(viewer);
}

/** A view of what instrumented threads or tasks show, listed from now on; null for any other name. @param {Viewer} viewer @param {string} name */
export function shownView(viewer, name) {
  const [, per, behaviour, what] = /^shown\.([a-z]+)\.([a-z-]+)\.(.+)$/.exec(name) || [];
  const known = viewer.shown.what.find((row) => row.name === what);
  if (!known || !viewer.shown.per.includes(per) || !viewer.shown.behaviours.includes(behaviour)) return null;
  let view = viewer.overview.views.find((row) => row.name === name);
  if (!view) {
    view = { name, label: `${known.label} per ${per}, ${behaviour}`, family: 'instrumentation', rows: [], values: [], isAsked: false, shown: { per, behaviour, what } };
    viewer.overview.views.push(view);
  }
  return view;
}

/** Asks for the rows of chosen views that the server must play first. @param {Viewer} viewer */
export async function loadShown(viewer) {
  for (const name of viewer.timeline.views) {
    if (name === NESTED) await loadNested(viewer, true);
    const view = shownView(viewer, name);
    if (!view || view.isAsked) continue;
    view.isAsked = true;
    try {
      const { rows, values, tasks_left_out: left, is_cut: isCut } = await viewer.source.played('shown', { view: name });
      Object.assign(view, { rows, values });
      if (!rows.length) view.label += ': nothing';
      if (left) view.label += ` (\`dump --shown task\` has ${formatCount(left)} more tasks, which ran shorter)`;
      if (isCut) view.label += ' (stacks are deeper than shown)';
    } catch (error) {
      view.isAsked = false;
      viewer.say(error);
      return;
    }
    placeRows(viewer);
  }
  viewer.wantedY = undefined;
}

/** Scrolls to where the address says, now that all rows are there. @param {Viewer} viewer */
function placeRows(viewer) {
  viewer.timeline.resize();
  viewer.timeline.scroll(viewer.wantedY === undefined ? 0 : viewer.wantedY - viewer.timeline.scrollY);
  viewer.drawLegend();
}

/**
 * Asks for the nested sections and the recorded counters, which may take a pass over the trace: of a large one only when they are chosen.
 * They are shown from the start if they tell more than the rows of threads, and no link says what to show.
 * @param {Viewer} viewer
 * @param {boolean} [isChosen]
 */
export async function loadNested(viewer, isChosen = false) {
  const { overview, timeline } = viewer;
  const view = overview.views.find((row) => row.name === NESTED);
  if (!view || view.isAsked || (!isChosen && viewer.report.events > MAX_READ_EVENTS)) return;
  view.isAsked = true;
  try {
    const { rows, values, counters, is_cut: isCut, tells_more: tellsMore } = await viewer.source.played(NESTED, {});
    Object.assign(view, { rows, values });
    if (isCut) view.label += ' (deeper than shown)';
    // The server lists them itself once it knows them: after a reload, or for a second page.
    const listed = new Set(overview.counters.map(({ name }) => name));
    overview.counters.push(...counters.filter(({ name }) => !listed.has(name)));
    if (rows.length && tellsMore && viewer.opensPlainly && !timeline.views.includes(NESTED)) timeline.views = [...timeline.views, NESTED];
    if (!rows.length) {
      overview.views.splice(overview.views.indexOf(view), 1);
      timeline.views = timeline.views.filter((name) => name !== NESTED);
      if (!timeline.views.length) timeline.views = ['state'];
      if (isChosen) viewer.say('The run has no nested sections.');
    }
  } catch (error) {
    view.isAsked = false;
    if (isChosen) viewer.say(error);
    return;
  }
  fillViews(viewer);
  placeRows(viewer);
}

/** @param {Viewer} viewer */
export function showChosen(viewer) {
  const { views } = viewer.timeline;
  viewer.view.value = views[0];
  viewer.second.value = '';
  const labels = new Map(viewer.overview.views.map((row) => [row.name, row.label]));
  const chip = (name) => element('button', {
    type: 'button', class: 'chip', title: `remove this view: ${fitText(labels.get(name) || name, 100)}`, onclick: () => setViews(viewer, viewer.timeline.views.filter((other) => other !== name)),
  }, `${fitText((labels.get(name) || name).replace(/ of the (ACTIVE|RUNNING) thread$/, ''), 28)} ×`); // how most views of models end
  viewer.chips.replaceChildren(...views.flatMap((name, at) => [...(at ? [chip(name)] : []), ...choicesOf(viewer, name)]));
}

/** Lists that choose whose a view is, and in which behaviour. @param {Viewer} viewer @param {string} name */
function choicesOf(viewer, name) {
  const { shown } = viewer.overview.views.find((row) => row.name === name) || {};
  if (!shown) return [];
  const choose = (kind, label, names) => {
    const list = /** @type {HTMLSelectElement} */ (element('select', { class: kind, 'aria-label': label, title: label, onchange: () => {
      const { per, behaviour, what } = /** @type {any} */ ({ ...shown, [kind]: list.value });
      setViews(viewer, viewer.timeline.views.map((other) => (other === name ? `shown.${per}.${behaviour}.${what}` : other)));
    } }, ...names.map((other) => element('option', { value: other }, kind === 'per' ? `per ${other}` : other))));
    list.value = shown[kind];
    return list;
  };
  return [choose('per', 'per thread, or per task in its own time', viewer.shown.per),
    choose('behaviour', 'the part of a task that is shown when a thread resumes it', viewer.shown.behaviours)];
}

/** Asks which views the models of the trace have, and adds them to the lists. @param {Viewer} viewer */
export async function loadModels(viewer) {
  if (!viewer.overview.task_types) {
    viewer.overview.task_types = await viewer.source.json('type_names').catch(() => []);
    // The view of task types has the colours of the rows of task types.
    const types = viewer.overview.views.find((row) => row.name === 'type');
    if (types) types.values = viewer.overview.task_types.map((label, slot) => [slot + 1, label]);
    viewer.timeline.layout();
    viewer.timeline.redraw();
  }
  const { families } = await viewer.source.json('models').catch(() => ({ families: [] }));
  const known = new Map(viewer.overview.views.map((row) => [row.name, row]));
  for (const family of families) {
    for (const type of family.types) {
      const row = { name: type.name, label: `${family.label}: ${type.title}`, family: `${family.label}: views of models`, rows: family.rows, values: type.values, isOfModel: true };
      const old = known.get(type.name);
      if (old) Object.assign(old, row);
      else viewer.overview.views.push(row);
    }
  }
  if (!viewer.shown.what.length) viewer.shown = await viewer.source.json('shown').catch(() => viewer.shown);
  for (const { name } of viewer.shown.what) shownView(viewer, `shown.thread.stacked.${name}`);
  fillViews(viewer);
  if (viewer.unknownViews) {
    viewer.restore();
    viewer.unknownViews = false;
  }
  viewer.timeline.redraw();
  viewer.drawLegend();
}
