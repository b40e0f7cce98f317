// Numbers as a person reads them; the same forms as on the terminal.

/**
 * A length of time with three significant figures: `1.23 s`, `12.3 ms`, `456 µs`, `789 ns`.
 * @param {number} ns
 * @returns {string}
 */
export function formatTime(ns) {
  const sign = ns < 0 ? '−' : '';
  const size = Math.abs(ns);
  if (size < 1e3) return `${sign}${Math.round(size)} ns`;
  if (size < 999500) return `${sign}${threeFigures(size / 1e3)} µs`;
  if (size < 999500000) return `${sign}${threeFigures(size / 1e6)} ms`;
  return `${sign}${threeFigures(size / 1e9)} s`;
}

/**
 * A point in time, exact enough to tell neighbouring pixels apart.
 * @param {number} ns nanoseconds since the start of the trace
 * @param {number} resolutionNs differences that need not be visible
 * @returns {string}
 */
export function formatPoint(ns, resolutionNs) {
  const decimals = Math.max(0, Math.min(9, 9 - Math.floor(Math.log10(Math.max(1, resolutionNs)))));
  return `${(ns / 1e9).toFixed(decimals)} s`;
}

/**
 * A date and time of day, the same for readers in all zones: `2026-11-28 06:20:12 UTC`.
 * @param {number} ns nanoseconds since 1970 (UTC)
 * @returns {string}
 */
export function formatDate(ns) {
  const date = new Date(ns / 1e6);
  return Number.isNaN(date.getTime()) ? '–' : `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/**
 * When something of a length begins: exact enough to find it again, however short it is.
 * @param {number} ns nanoseconds since the start of the trace
 * @param {number} lengthNs
 * @returns {string}
 */
export function formatStart(ns, lengthNs) {
  return formatPoint(ns, lengthNs / 100);
}

/** @param {number} value */
function threeFigures(value) {
  if (value < 9.995) return value.toFixed(2);
  if (value < 99.95) return value.toFixed(1);
  return value.toFixed(0);
}

/**
 * A count in groups of three, with narrow no-break spaces.
 * @param {number} value
 * @returns {string}
 */
export function formatCount(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/**
 * A count with what is counted: `1 worker`, `64 workers`.
 * @param {number} value
 * @param {string} what one of them
 * @param {string} [many] several of them
 * @returns {string}
 */
export function formatNumberOf(value, what, many = `${what}s`) {
  return `${formatCount(value)} ${value === 1 ? what : many}`;
}

/**
 * The one unit of a column of times whose largest value is about this one, as the terminal's report has it.
 * @param {number} largest nanoseconds
 * @returns {{unit: string, show: (ns: number) => string}} its name, and how a time is shown in it
 */
export function unitOf(largest) {
  const [unit, size] = /** @type {[string, number]} */ (largest < 1e6 ? ['µs', 1e3] : largest < 1e9 ? ['ms', 1e6] : ['s', 1e9]);
  const show = (/** @type {number} */ ns) => {
    const value = ns / size;
    if (value === 0) return '0';
    if (value < 0.0005) return '<0.001';
    return value < 9.9995 ? value.toFixed(3) : value < 99.995 ? value.toFixed(2) : value.toFixed(1);
  };
  return { unit, show };
}

/**
 * A part of a whole.
 * @param {number} part
 * @param {number} whole
 * @returns {string}
 */
export function formatPercent(part, whole) {
  return whole > 0 ? `${((part * 100) / whole).toFixed(1)} %` : '–';
}

/**
 * A name in at most `width` characters, cut in the middle, as names differ at both ends.
 * @param {string} text
 * @param {number} width
 * @returns {string}
 */
export function fitText(text, width) {
  if (text.length <= width || width < 3) return text;
  const head = Math.ceil((width - 1) / 2);
  // Half of a character that has two parts would be shown as one that cannot be read.
  const before = text.slice(0, head).replace(/[\ud800-\udbff]$/, '');
  return `${before}…${text.slice(text.length - (width - 1 - head)).replace(/^[\udc00-\udfff]/, '')}`;
}

/** Pixels of a character of a bar, about. */
const BAR_CHARACTER = 7.2;
/** Characters of a name from which on a share has room beside it. */
const FEW_CHARACTERS = 9;

/** A name with its share for a bar of this many pixels: the name is cut in its middle, so that names with the same begin differ. @param {string} name @param {string} share @param {number} pixels */
export function barText(name, share, pixels) {
  const room = Math.floor((pixels - 8) / BAR_CHARACTER);
  if (name.length + 1 + share.length <= room) return `${name} ${share}`;
  const beside = room - share.length - 1;
  return beside >= FEW_CHARACTERS ? `${fitText(name, beside)} ${share}` : fitText(name, Math.max(3, room));
}

/** A path as one word that a POSIX shell takes as it is. @param {string} path */
export function shellWord(path) {
  const word = path.startsWith('-') ? `./${path}` : path;
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}
