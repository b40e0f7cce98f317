// Colours of states. Hues follow Okabe and Ito's palette, which people with any common colour vision
// tell apart; what belongs to one group differs in lightness. Every colour has a contrast of at least
// 3:1 with its page (a test holds that). Where a thread is not there, pictures are blank, and legends and
// tables have an empty frame.

/** @typedef {{[state: string]: string}} StateColours */

/** States in which a thread is not there. */
export const ABSENT = ['not_started', 'ended'];
/** Their colour. */
export const BLANK = 'transparent';

/** Of states, on the light page; from `causes.toml`. @type {StateColours} */
export const LIGHT_STATES = {};
/** The same on the dark page. @type {StateColours} */
export const DARK_STATES = {};

/** Colours that are no state: lightness for the two pages. */
export const LIGHT_MARKS = { page: '#ffffff', text: '#1b1f24', long: '#c00020', finding: '#7b2fbf', lost: '#000000', uncertain: '#ffffff', match: '#008f5a', off: '#4a4f55', shorter: '#0b5fa5', same: '#57606a' };
/** The same for the dark page. */
export const DARK_MARKS = { page: '#14171a', text: '#e8eaed', long: '#ff5c72', finding: '#c79bff', lost: '#ffffff', uncertain: '#14171a', match: '#4fe0a4', off: '#b8bec5', shorter: '#6cb8f0', same: '#a8b0b8' };

/** Colours that only distinguish things (task types, tasks, regions); the dark page has them lighter. None is that of a common state. */
export const VALUE_COLOURS = [
  '#cb3489', '#7f981e', '#3e29d4', '#752916', '#a857d8', '#9c8b5b', '#45258a', '#4a2943', '#389fa9', '#2ca420',
  '#29668e', '#233e0d', '#5a81d7', '#579756', '#9728d5', '#125851',
];

/**
 * A colour as the bytes of an image, little end first.
 * @param {string} hex
 * @returns {number}
 */
export function packColour(hex) {
  const value = parseInt(hex.slice(1), 16);
  return ((0xff << 24) | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/**
 * @param {number} colour packed
 * @param {number} towards packed
 * @param {number} share of `towards`, 0 to 1
 * @returns {number}
 */
export function mixColours(colour, towards, share) {
  let mixed = 0xff << 24;
  for (const shift of [0, 8, 16]) {
    const from = (colour >> shift) & 0xff;
    const to = (towards >> shift) & 0xff;
    mixed |= Math.round(from + (to - from) * share) << shift;
  }
  return mixed >>> 0;
}

/**
 * Everything that drawing needs to know about colours.
 * @typedef {{
 *   dark: boolean, page: string, text: string, state: string[],
 *   shades: Uint32Array, values: Uint32Array, pageColour: number, there: number,
 *   ordered: Uint32Array, inks: string[], inkOfValues: string, long: number, finding: number, lost: number, uncertain: number, match: number, offCpu: number,
 *   marks: {[name: string]: string},
 * }} Theme
 */

/** Colours of names in bars. */
const INKS = ['#101214', '#ffffff'];

/** Relative luminance of a packed colour, as WCAG defines it. @param {number} colour */
function luminance(colour) {
  const part = (/** @type {number} */ shift) => {
    const value = ((colour >> shift) & 255) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(0) + 0.7152 * part(8) + 0.0722 * part(16);
}

/** The colour in which a name on this one is read best. @param {number} colour packed */
function inkOn(colour) {
  const contrast = (/** @type {string} */ ink) => {
    const [one, two] = [luminance(packColour(ink)), luminance(colour)];
    return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
  };
  return contrast(INKS[0]) > contrast(INKS[1]) ? INKS[0] : INKS[1];
}

/** How much lighter the colours of values are on the dark page. */
const LIGHTER = 0.25;
/** How far the second round of colours goes to the colour of text: values beyond the first sixteen. */
const SECOND_ROUND = 0.45;

/** How much of a colour is left where its state has hardly any share of the pixel. */
const FAINTEST = 0.45;

/** Part of the page's colour where a thread is there, in no state. */
const PALE = 0.7;

/**
 * @param {boolean} dark
 * @param {{name: string}[]} states in the order of their numbers
 * @returns {Theme}
 */
export function makeTheme(dark, states) {
  const colours = dark ? DARK_STATES : LIGHT_STATES;
  const marks = dark ? DARK_MARKS : LIGHT_MARKS;
  const page = packColour(marks.page);
  const state = states.map((row) => (ABSENT.includes(row.name) ? BLANK : colours[row.name] || colours.unknown));
  const shades = new Uint32Array(256 * 16);
  state.forEach((hex, number) => {
    const full = packColour(hex === BLANK ? marks.page : hex);
    for (let step = 0; step < 16; step++) {
      shades[number * 16 + step] = mixColours(full, page, (1 - step / 15) * FAINTEST);
    }
  });
  const inks = state.map((hex) => (hex === BLANK ? marks.text : inkOn(packColour(hex))));
  const values = Uint32Array.from(VALUE_COLOURS, (hex) => (dark ? mixColours(packColour(hex), 0xffffffff, LIGHTER) : packColour(hex)));
  const second = values.map((colour) => mixColours(colour, packColour(marks.text), SECOND_ROUND));
  return {
    dark, page: marks.page, text: marks.text, state, shades, pageColour: page, there: mixColours(packColour(colours.unknown), page, PALE),
    values, inks, inkOfValues: dark ? INKS[0] : INKS[1], ordered: Uint32Array.from([...values, ...second]),
    long: packColour(marks.long), finding: packColour(marks.finding), lost: packColour(marks.lost),
    uncertain: packColour(marks.uncertain), match: packColour(marks.match), offCpu: packColour(marks.off), marks,
  };
}

/**
 * The full colour of a state.
 * @param {Theme} theme
 * @returns {(state: number) => number}
 */
export function stateColours(theme) {
  return (state) => theme.shades[state * 16 + 15];
}

/** Values of code by samples: a time without a CPU, and the first function; between them is the one without a path. */
const CODE_NO_CPU = 1;
const CODE_FIRST = 3;

/**
 * The colours of code by samples, by value: functions with most time have the first ones; a time without a CPU has that of the state.
 * @param {Theme} theme
 * @param {{name: string}[]} states
 * @returns {(value: number) => number}
 */
export function codeColours(theme, states) {
  const noCpu = stateColours(theme)(states.findIndex(({ name }) => name === 'out_of_cpu'));
  const other = packColour(theme.marks.same);
  return (value) => (value === CODE_NO_CPU ? noCpu : value < CODE_FIRST ? other : orderedColour(theme, value - CODE_FIRST));
}

/**
 * A colour of an image as styles know it.
 * @param {number} packed
 * @returns {string}
 */
export function cssColour(packed) {
  return `rgb(${packed & 255} ${(packed >> 8) & 255} ${(packed >> 16) & 255})`;
}

/**
 * The colour of the first, second, … value of those that a view names: twice sixteen differ.
 * @param {Theme} theme
 * @param {number} place
 * @returns {number}
 */
export function orderedColour(theme, place) {
  return theme.ordered[place % theme.ordered.length];
}

/**
 * The colour of a number that only needs to differ from its neighbours.
 * @param {Theme} theme
 * @param {number} value
 * @returns {number}
 */
export function valueColour(theme, value) {
  // Fibonacci hashing: neighbours get colours far apart.
  return theme.values[(Math.imul(value, 0x9e3779b1) >>> 16) % theme.values.length];
}
