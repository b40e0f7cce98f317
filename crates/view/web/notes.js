// Notes: bookmarks with text, kept beside the trace, saved and loaded as files.

import { element } from './elements.js';
import { formatStart, formatTime, fitText } from './format.js';
import { saveFile } from './files.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/** @typedef {{id: string, run: string, from_ns: number, to_ns: number, row: string, text: string, view: string}} Note */

/** Longest address of a view that a note keeps, as in `notes.rs`. */
const MAX_VIEW = 8000;

/** What tells a run from others: begin on its own clock, and length. @param {any} overview */
export const runOf = (overview) => `${overview.start_ns}.${overview.length_ns}`;

/** Takes the notes that the server has, those of this run for the timeline. @param {Viewer} viewer @param {{notes: Note[]}} file */
function takeNotes(viewer, file) {
  viewer.notes = file.notes;
  viewer.timeline.notes = file.notes.filter((note) => note.run === runOf(viewer.overview));
  viewer.timeline.redraw();
}

/** Asks for the notes beside the trace. @param {Viewer} viewer */
export async function loadNotes(viewer) {
  const file = await viewer.source.json('notes').catch((error) => { viewer.notesProblem = error.message; return { notes: [] }; });
  takeNotes(viewer, file);
}

/** What a new note is about: the selected range, the opened section, else the visible part. @param {Viewer} viewer */
function subjectOf(viewer) {
  const { selection, marked, from, span } = viewer.timeline;
  if (selection) return { from_ns: selection.from, to_ns: selection.to, row: '', words: 'the selected time' };
  if (marked) {
    const row = viewer.timeline.rowOfPlace(marked);
    return { from_ns: marked.start, to_ns: marked.end, row: row ? fitText(row.label, 200) : '', words: 'the opened section' };
  }
  return { from_ns: Math.round(from), to_ns: Math.round(from + span), row: '', words: 'the visible part' };
}

/** Changes the notes beside the trace, and shows them. @param {Viewer} viewer @param {'PUT' | 'DELETE'} method @param {{[key: string]: string}} query @param {any} [body] */
async function changeNotes(viewer, method, query, body) {
  try {
    takeNotes(viewer, await viewer.source.change('notes', method, query, body));
    showNotes(viewer);
  } catch (error) {
    viewer.say(error);
  }
}

/** Shows a note's view, and the notes. @param {Viewer} viewer @param {Note} note */
function goToNote(viewer, note) {
  const { timeline } = viewer;
  if (note.view) {
    history.replaceState(null, '', note.view);
    viewer.restore();
  } else timeline.show(note.from_ns, note.to_ns);
  // A file may come from somewhere else: its time counts.
  if (note.from_ns > timeline.from + timeline.span || note.to_ns < timeline.from) timeline.show(note.from_ns, Math.max(note.to_ns, note.from_ns + 1));
  showNotes(viewer, note.id);
}

/** The panel of notes, with the focus on one of them or on the text of a new one. @param {Viewer} viewer @param {string} [chosen] the id of a note */
export function showNotes(viewer, chosen) {
  viewer.turnPanel();
  const own = viewer.timeline.notes;
  const others = viewer.notes.length - own.length;
  const subject = subjectOf(viewer);
  const length = Math.max(1, subject.to_ns - subject.from_ns);
  const text = /** @type {HTMLTextAreaElement} */ (element('textarea', { id: 'note-text', rows: 3, maxlength: 4000, 'aria-label': 'Text of a new note' }));
  const add = () => {
    if (!text.value.trim()) { text.focus(); return; }
    const { from_ns, to_ns, row } = subject;
    const id = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    // Without its view a note goes to its time. The address of many folded groups is too long to be kept.
    const address = viewer.address();
    const view = address.length > MAX_VIEW ? '' : address;
    changeNotes(viewer, 'PUT', {}, { notes: [{ id, from_ns, to_ns, row, run: runOf(viewer.overview), text: text.value.trim(), view }] });
  };
  text.addEventListener('keydown', (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) add(); });
  const file = /** @type {HTMLInputElement} */ (element('input', { type: 'file', id: 'note-file', accept: '.json,application/json', 'aria-label': 'Load a file of notes', onchange: async () => {
    const chosen = file.files && file.files[0];
    if (!chosen) return;
    try {
      await changeNotes(viewer, 'PUT', {}, JSON.parse(await chosen.text()));
    } catch {
      viewer.say(`${fitText(chosen.name, 100)} is not a file of notes`);
    }
  } }));
  const button = (label, title, onclick, more = {}) => element('button', { type: 'button', title, onclick, ...more }, label);
  const row = (note) => element('li', { 'data-note': note.id, class: note.id === chosen ? 'chosen' : null },
    element('button', { type: 'button', class: 'link', onclick: () => goToNote(viewer, note) }, `${formatStart(note.from_ns, Math.max(1, note.to_ns - note.from_ns))}, ${formatTime(note.to_ns - note.from_ns)}${note.row ? `, ${fitText(note.row, 60)}` : ''}`),
    element('p', {}, fitText(note.text, 4000)), button('remove', `remove the note: ${fitText(note.text, 60)}`, () => changeNotes(viewer, 'DELETE', { id: note.id })));
  viewer.panel.replaceChildren(element('h2', { id: 'notes-title' }, 'Notes'),
    viewer.notesProblem ? element('p', { class: 'warn' }, fitText(viewer.notesProblem, 400)) : '',
    element('p', {}, `On ${subject.words}, ${formatTime(subject.to_ns - subject.from_ns)} from ${formatStart(subject.from_ns, length)} on${subject.row ? `, ${subject.row}` : ''}:`), text,
    element('p', {}, button('add the note', 'keep it beside the trace (ctrl+Enter)', add, { id: 'note-add' })),
    own.length ? element('ol', { id: 'notes' }, ...own.map(row)) : element('p', { class: 'note' }, 'There are no notes on this run yet.'),
    others ? element('p', { class: 'note' }, `${others} on another run of this name ${others === 1 ? 'is' : 'are'} kept.`) : '',
    viewer.notes.length ? element('p', {}, button('save as a file', 'all notes as a file, to be sent', () => saveFile('notes.json', new Blob([JSON.stringify({ schema: 'taskscope-notes/1', notes: viewer.notes }, null, 1)], { type: 'application/json' })), { id: 'notes-save' })) : '',
    element('p', {}, element('label', { for: 'note-file' }, 'Load a file of notes: '), file));
  const focused = chosen ? viewer.panel.querySelector('.chosen button') : text;
  /** @type {HTMLElement | null} */ (focused)?.focus();
  viewer.live.textContent = own.length === 1 ? '1 note' : `${own.length} notes`;
}
