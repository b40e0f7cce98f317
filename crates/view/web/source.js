// Where buckets come from: the local server (any zoom), or the report's own file (one zoom level).

import { NOTHING, joinBuckets } from './pixels.js';

/** What turns the direction of writing or breaks a line, as in `format.rs`. */
const ACTS = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Marks over a letter, beyond the three that writing systems need: more of them cover the lines around. */
const PILES = /(\p{M}{3})\p{M}+/gu;

/**
 * What the page shows, from the text that was sent or embedded. Names come from traces, and those from anywhere: what would turn the
 * letters of its neighbours is shown as the sign for what cannot be shown.
 * @param {string} text
 * @returns {any}
 */
export function readJson(text) {
  return JSON.parse(text.replace(ACTS, '\ufffd').replace(PILES, '$1'));
}

/** Under which name the browser keeps the token of the server at this address: links of an earlier server have another one. */
const TOKEN_NAME = 'taskscope-token';

/** The token that this browser used last at this address; none where it keeps nothing. */
function keptToken() {
  try {
    return localStorage.getItem(TOKEN_NAME) || '';
  } catch {
    return '';
  }
}

/** @param {string} token */
function keepToken(token) {
  try {
    localStorage.setItem(TOKEN_NAME, token);
  } catch {
    // Then links of an earlier server ask for the token.
  }
}

/** The overview with this token; null where the server does not take it. @param {string} base @param {string} token */
async function overviewWith(base, token) {
  const response = await fetch(`${base}/overview`, { headers: { 'x-taskscope-token': token }, cache: 'no-store' });
  if (response.status === 401) return null;
  if (!response.ok) throw new Error(await response.text());
  return readJson(await response.text());
}

/** Lists the rows of device queues and of code by samples among the views of a run. @param {any} overview */
function listRows(overview) {
  const { devices, samples } = overview;
  for (const { name, label, rows, values, is_cut: isCut } of samples) overview.views.push({ name, label: `${label}${isCut ? ' (deeper than shown)' : ''}`, rows, values, isOfThreads: true, isOfSamples: true });
  if (devices.rows.length) overview.views.push({ name: 'devices', label: 'device queues', rows: devices.rows, values: devices.values, isOfThreads: true });
}

/** Values of code by samples that have shares of their own in a stack; place 0 has all other code. */
export const STACKED_CODE = 32;

/** Buckets of a tile. */
const TILE = 512;
/** Tiles are forgotten, oldest first, beyond this many numbers. */
const KEPT_NUMBERS = 48 * 1024 * 1024;
/** Time after which tiles that failed to come are asked for again. */
const RETRY_MS = 1000;
/** Stretches are forgotten, oldest first, beyond this many: each filter of rows has its own. */
const KEPT_STRETCHES = 1000;

/** A task in words, and what names it to the server. @typedef {{ name: string, number: string | null, pid: number | null, at: number | null }} TaskRef */

/**
 * @typedef {{
 *   track: number, start: number, end: number, state: string, label: string, place: string, task: number | null, task_ref: TaskRef | null,
 *   [more: string]: any,
 * }} SectionAt
 */

/** Rows of buckets from the server, kept in tiles. */
export class ServerSource {
  /**
   * @param {string} token
   * @param {string} startNs start of the trace on its own clock, in decimal
   * @param {string} [base] where the server answers
   */
  constructor(token, startNs, base = 'api') {
    this.token = token;
    this.base = base;
    this.start = BigInt(startNs);
    /** @type {Map<string, {buckets: Uint32Array, values: Uint32Array | null}>} */
    this.tiles = new Map();
    this.numbers = 0;
    /** @type {Set<string>} */
    this.pending = new Set();
    /** Requests under way: for tiles, and for stretches of numbers, which may take long and must not hold up tiles. */
    this.tilesInFlight = 0;
    this.stretchesInFlight = 0;
    /** Requests for which the trace may have to be played first. */
    this.playing = 0;
    /** Called when tiles have come. @type {() => void} */
    this.onArrival = () => {};
    /** Views of which tiles have come. @type {Set<string>} */
    this.answered = new Set();
    /** Called when the first tiles of a view have come: it was played. @type {(view: string) => void} */
    this.onView = () => {};
    /** @type {Map<string, Stretch>} */
    this.stretches = new Map();
    /** What the tiles must match, as the server needs it. */
    this.filter = '';
  }

  /**
   * The run that a server shows, which wants the token of the page's address, or the one that this browser used last; null without
   * the right one.
   * @param {string} base where the server answers
   * @returns {Promise<{source: ServerSource, overview: any} | null>}
   */
  static async open(base) {
    let token = new URLSearchParams(location.search).get('token') || '';
    let overview = await overviewWith(base, token);
    if (!overview) {
      token = keptToken();
      overview = token && await overviewWith(base, token);
      if (!overview) return null;
      const address = new URL(location.href);
      address.searchParams.set('token', token);
      history.replaceState(null, '', address);
    }
    keepToken(token);
    listRows(overview);
    overview.views.push({ name: 'nested', label: 'nested sections', rows: [], values: [], isOfThreads: true, isAsked: false });
    return { source: new ServerSource(token, overview.start_ns, base), overview };
  }

  /** Whether something is still on its way. */
  get busy() { return this.tilesInFlight + this.stretchesInFlight + this.playing > 0; }

  /**
   * @param {string} path
   * @param {{[key: string]: string | number}} query
   * @returns {Promise<Response>}
   */
  async request(path, query) {
    // Lists of thousands of tracks have as many commas.
    const text = Object.entries(query).map(([key, value]) => `${key}=${encodeURIComponent(value).replaceAll('%2C', ',')}`).join('&');
    const response = await fetch(`${this.base}/${path}?${text}`, { headers: { 'x-taskscope-token': this.token }, cache: 'no-store' });
    if (!response.ok) throw new Error((await response.text()) || `the viewer answered ${response.status}`);
    return response;
  }

  /**
   * @param {string} path
   * @param {{[key: string]: string | number}} query
   * @returns {Promise<any>}
   */
  async json(path, query = {}) {
    return readJson(await (await this.request(path, query)).text());
  }

  /**
   * Changes what the server keeps.
   * @param {string} path
   * @param {'PUT' | 'DELETE'} method
   * @param {{[key: string]: string}} query
   * @param {any} [body]
   * @returns {Promise<any>}
   */
  async change(path, method, query, body) {
    const response = await fetch(`${this.base}/${path}?${new URLSearchParams(query)}`, { method, headers: { 'x-taskscope-token': this.token }, body: body && JSON.stringify(body), cache: 'no-store' });
    if (!response.ok) throw new Error((await response.text()) || `the viewer answered ${response.status}`);
    return readJson(await response.text());
  }

  /**
   * What the trace may have to be played for first.
   * @param {string} path
   * @param {{[key: string]: string | number}} query
   * @returns {Promise<any>}
   */
  async played(path, query) {
    this.playing++;
    try {
      return await this.json(path, query);
    } finally {
      this.playing--;
    }
  }

  /** Forgets everything, because what is asked for has changed. */
  forget() {
    this.tiles.clear();
    this.numbers = 0;
  }

  /**
   * Time of bucket 0 at a level: buckets are aligned on the trace's own clock.
   * @param {number} level
   */
  offset(level) {
    return -Number(BigInt.asUintN(level, this.start));
  }

  /**
   * Fills one number for each pixel and says whether all of it was there.
   * @param {string} view
   * @param {number} track
   * @param {number} from
   * @param {number} nsPerPixel
   * @param {Uint32Array} out
   * @param {Uint32Array | null} outValues
   * @returns {boolean}
   */
  columns(view, track, from, nsPerPixel, out, outValues) {
    const level = levelFor(nsPerPixel);
    for (let coarser = 0; coarser <= 12; coarser++) {
      const at = level + coarser;
      const bucketNs = 2 ** at;
      const offset = this.offset(at);
      const first = Math.max(0, Math.floor((from - offset) / bucketNs));
      const last = Math.max(first, Math.floor((from + nsPerPixel * out.length - offset) / bucketNs));
      let whole = true;
      for (let tile = Math.floor(first / TILE); whole && tile * TILE <= last; tile++) whole = this.tiles.has(`${view}/${at}/${tile}/${track}`);
      // What is not there yet is drawn from a coarser level that is, or from pieces of the coarsest.
      if (!whole && coarser < 12) continue;
      const scratch = new Uint32Array(last - first + 1).fill(NOTHING);
      const values = outValues ? new Uint32Array(last - first + 1) : null;
      for (let tile = Math.floor(first / TILE); tile * TILE <= last; tile++) {
        const known = this.tiles.get(`${view}/${at}/${tile}/${track}`);
        if (!known) continue;
        const low = Math.max(first, tile * TILE);
        const high = Math.min(last + 1, (tile + 1) * TILE);
        scratch.set(known.buckets.subarray(low - tile * TILE, high - tile * TILE), low - first);
        if (values && known.values) values.set(known.values.subarray(low - tile * TILE, high - tile * TILE), low - first);
      }
      if (whole || coarser === 12) {
        joinBuckets(scratch, values, first, bucketNs, offset, from, nsPerPixel, out, outValues);
        return whole && coarser === 0;
      }
    }
    return false;
  }

  /**
   * Asks for what is missing for these tracks.
   * @param {string} view
   * @param {number[]} tracks
   * @param {number} from
   * @param {number} nsPerPixel
   * @param {number} width
   */
  want(view, tracks, from, nsPerPixel, width) {
    if (this.tilesInFlight >= 3) { this.again = true; return; }
    const level = levelFor(nsPerPixel);
    const bucketNs = 2 ** level;
    const offset = this.offset(level);
    const first = Math.max(0, Math.floor((from - offset) / bucketNs / TILE));
    const last = Math.max(first, Math.floor((from + nsPerPixel * width - offset) / bucketNs / TILE));
    const missing = (tile, track) => {
      const key = `${view}/${level}/${tile}/${track}`;
      return !this.tiles.has(key) && !this.pending.has(key);
    };
    for (let tile = first; tile <= last; tile++) {
      const lacking = tracks.filter((track) => missing(tile, track));
      if (lacking.length === 0) continue;
      let end = tile;
      while (end < last && lacking.every((track) => missing(end + 1, track))) end++;
      this.fetchTiles(view, level, tile, end - tile + 1, lacking);
      tile = end;
      if (this.tilesInFlight >= 3) { this.again = true; return; }
    }
  }

  /** @param {string} key @returns {Stretch} */
  stretch(key) {
    let known = this.stretches.get(key);
    if (!known) {
      for (const [old] of this.stretches) if (this.stretches.size >= KEPT_STRETCHES) this.stretches.delete(old);
      this.stretches.set(key, (known = new Stretch()));
    }
    return known;
  }

  /**
   * Threads in each state for each pixel, as far as known.
   * @param {string} key names the group of tracks
   * @param {number[]} tracks
   * @param {number} from
   * @param {number} nsPerPixel
   * @param {number} pixels
   * @param {number} states
   * @returns {Float64Array | null} `[pixel][state]`
   */
  stack(key, tracks, from, nsPerPixel, pixels, states) {
    // An empty list means all tracks to the server.
    if (!tracks.length) return new Float64Array(pixels * states);
    const coarser = tracks.length > 1000 ? 2 : tracks.length > 200 ? 1 : 0;
    // Tracks are in the order of ranks; a filter of rows takes some out of their group.
    const names = listRanges([...tracks].sort((a, b) => a - b));
    const have = this.stretch(`stack ${key} ${names}`).cover(this, from, nsPerPixel, pixels, coarser, async (level, first, count) =>
      new Float32Array(await (await this.request('stack', { level, first, count, tracks: names })).arrayBuffer()));
    if (!have) return null;
    const [bucketNs, offset] = [2 ** have.level, this.offset(have.level)];
    return sharesOfPixels(have.data, states, bucketNs, offset + have.first * bucketNs, [-Infinity, Infinity], from, nsPerPixel, pixels, 1);
  }

  /**
   * Threads that run each code by samples for each pixel, as far as known.
   * @param {number[]} rows of the view of code, rising
   * @param {number} from
   * @param {number} nsPerPixel
   * @param {number} pixels
   * @returns {Float64Array | null} `[pixel][value]`, of `STACKED_CODE` values
   */
  code(rows, from, nsPerPixel, pixels) {
    const names = listRanges(rows);
    const have = this.stretch(`code ${names}`).cover(this, from, nsPerPixel, pixels, 0, async (level, first, count) =>
      new Float32Array(await (await this.request('code', { level, first, count, tracks: names })).arrayBuffer()));
    if (!have) return null;
    const [bucketNs, offset] = [2 ** have.level, this.offset(have.level)];
    return sharesOfPixels(have.data, STACKED_CODE, bucketNs, offset + have.first * bucketNs, [-Infinity, Infinity], from, nsPerPixel, pixels, 1);
  }

  /**
   * Sections that are wide enough for a name, around what is shown, as far as known.
   * @param {string} view
   * @param {number[]} tracks
   * @param {number} from
   * @param {number} nsPerPixel
   * @param {number} pixels
   * @returns {{words: string[], bars: [number, number, number, number, number][]} | null} track, begin, end, place of the name, state
   */
  bars(view, tracks, from, nsPerPixel, pixels) {
    const names = listRanges(tracks);
    // Buckets of eight pixels: what fills one of them has eleven to forty-five.
    const have = this.stretch(`bars ${view} ${names}`).cover(this, from, nsPerPixel, pixels, 3, (level, first, count) =>
      this.json('bars', { view, level, first, count, tracks: names }));
    return have && have.data;
  }

  /**
   * A counter's buckets around what is shown, as far as known.
   * @param {string} name
   * @param {number} from
   * @param {number} nsPerPixel
   * @param {number} pixels
   */
  counter(name, from, nsPerPixel, pixels) {
    const have = this.stretch(`counter ${name}`).cover(this, from, nsPerPixel, pixels, 0, (level, first, count) =>
      this.json('counter', { name, level, first, count }));
    if (!have) return null;
    const bucketNs = 2 ** have.level;
    return { ...have.data, bucketNs, offset: this.offset(have.level) + have.first * bucketNs };
  }

  /**
   * How many threads run tasks of each type in buckets around what is shown, as far as known.
   * @param {number} from
   * @param {number} nsPerPixel
   * @param {number} pixels
   */
  types(from, nsPerPixel, pixels) {
    const have = this.stretch('types').cover(this, from, nsPerPixel, pixels, 1, async (level, first, count) =>
      new Float32Array(await (await this.request('types', { level, first, count })).arrayBuffer()));
    if (!have) return null;
    const bucketNs = 2 ** have.level;
    return { data: have.data, rows: have.data.length / have.count, buckets: have.count, bucketNs, offset: this.offset(have.level) + have.first * bucketNs };
  }

  /**
   * @param {string} view
   * @param {number} level
   * @param {number} tile
   * @param {number} count
   * @param {number[]} tracks
   */
  async fetchTiles(view, level, tile, count, tracks) {
    const keys = tracks.flatMap((track) => Array.from({ length: count }, (_, i) => `${view}/${level}/${tile + i}/${track}`));
    keys.forEach((key) => this.pending.add(key));
    this.tilesInFlight++;
    const filter = this.filter;
    try {
      const query = { view, level, first: tile * TILE, count: count * TILE, tracks: listRanges(tracks) };
      if (filter) query.where = filter;
      const data = new Uint32Array(await (await this.request('rows', query)).arrayBuffer());
      if (!this.answered.has(view)) {
        this.answered.add(view);
        this.onView(view);
      }
      if (filter !== this.filter) return;
      const hasValues = data.length === 2 * tracks.length * count * TILE;
      tracks.forEach((track, row) => {
        for (let i = 0; i < count; i++) {
          const at = (row * count + i) * TILE;
          const valuesAt = tracks.length * count * TILE + at;
          this.tiles.set(`${view}/${level}/${tile + i}/${track}`, {
            buckets: data.subarray(at, at + TILE), values: hasValues ? data.subarray(valuesAt, valuesAt + TILE) : null,
          });
          this.numbers += hasValues ? 2 * TILE : TILE;
        }
      });
      for (const [key, old] of this.tiles) {
        if (this.numbers <= KEPT_NUMBERS) break;
        this.tiles.delete(key);
        this.numbers -= old.buckets.length + (old.values ? old.values.length : 0);
      }
    } catch (error) {
      this.failure = error;
      // What is missing is asked for with the next picture: not for ever without a pause, as after the end of the server. Other rows do not wait.
      this.tilesInFlight--;
      this.again = false;
      this.onArrival();
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      this.tilesInFlight++;
    } finally {
      keys.forEach((key) => this.pending.delete(key));
      this.tilesInFlight--;
      this.again = false;
      this.onArrival();
    }
  }
}

/**
 * Numbers of a stretch of time that is a little longer than what is shown, asked for again when the
 * shown time leaves it or the zoom changes.
 */
class Stretch {
  constructor() {
    /** @type {any} */
    this.have = null;
    this.asked = '';
    /** Questions so far, and the one whose answer is kept. */
    this.questions = 0;
    this.answered = 0;
  }

  /**
   * @param {ServerSource} source
   * @param {number} from
   * @param {number} nsPerPixel
   * @param {number} pixels
   * @param {number} coarser levels
   * @param {(level: number, first: number, count: number) => Promise<any>} ask
   * @returns {{level: number, first: number, count: number, data: any} | null}
   */
  cover(source, from, nsPerPixel, pixels, coarser, ask) {
    const level = levelFor(nsPerPixel) + coarser;
    const step = 256;
    const [bucketNs, offset] = [2 ** level, source.offset(level)];
    const first = Math.max(0, Math.floor((from - offset) / bucketNs / step) * step);
    const last = Math.ceil(((from + nsPerPixel * pixels - offset) / bucketNs + 1) / step) * step;
    const wanted = `${level}/${first}/${last}`;
    if (this.asked !== wanted && source.stretchesInFlight < 3) {
      this.asked = wanted;
      const question = ++this.questions;
      source.stretchesInFlight++;
      ask(level, first, last - first)
        .then((data) => {
          // Answers may overtake each other, and the last question is not asked again.
          if (question < this.answered) return;
          this.answered = question;
          this.have = { level, first, count: last - first, data };
        })
        .catch((error) => { source.failure = error; })
        .finally(() => { source.stretchesInFlight--; source.again = false; source.onArrival(); });
    }
    return this.have;
  }
}

/**
 * Threads in each state for each pixel, from those of buckets: what the pixels of a bucket have together is the bucket's.
 * @param {ArrayLike<number>} data `[bucket][state]`: threads on average, in `unit`s
 * @param {number} states
 * @param {number} bucketNs
 * @param {number} offset time of the first bucket
 * @param {[number, number]} run outside of it there is nothing: what a bucket has is in its part of the run
 * @param {number} from
 * @param {number} nsPerPixel
 * @param {number} pixels
 * @param {number} unit
 * @returns {Float64Array} `[pixel][state]`
 */
function sharesOfPixels(data, states, bucketNs, offset, run, from, nsPerPixel, pixels, unit) {
  const shares = new Float64Array(pixels * states);
  const buckets = data.length / states;
  for (let x = 0; x < pixels; x++) {
    const [low, high] = [from + x * nsPerPixel, from + (x + 1) * nsPerPixel];
    const last = Math.min(buckets, Math.ceil((high - offset) / bucketNs));
    for (let bucket = Math.max(0, Math.floor((low - offset) / bucketNs)); bucket < last; bucket++) {
      const [start, end] = [Math.max(run[0], offset + bucket * bucketNs), Math.min(run[1], offset + (bucket + 1) * bucketNs)];
      const part = Math.min(high, end) - Math.max(low, start);
      if (part <= 0) continue;
      const scale = (unit * part * bucketNs) / ((end - start) * nsPerPixel);
      for (let state = 0; state < states; state++) shares[x * states + state] += data[bucket * states + state] * scale;
    }
  }
  return shares;
}

/**
 * The level whose buckets are nearest to a pixel: 0.7 to 1.4 of one.
 * @param {number} nsPerPixel
 * @returns {number}
 */
export function levelFor(nsPerPixel) {
  return Math.max(0, Math.round(Math.log2(Math.max(1, nsPerPixel))));
}

/**
 * `0-63,70` for rising numbers.
 * @param {number[]} numbers
 * @returns {string}
 */
export function listRanges(numbers) {
  const parts = [];
  for (let i = 0; i < numbers.length; i++) {
    const first = numbers[i];
    while (i + 1 < numbers.length && numbers[i + 1] === numbers[i] + 1) i++;
    parts.push(first === numbers[i] ? `${first}` : `${first}-${numbers[i]}`);
  }
  return parts.join(',');
}

/**
 * Rows of one view in the file that shows them.
 * @typedef {{level: number, first_bucket_ns: number, buckets: number, tracks: number[], data: string}} PackedRows
 */

/** Rows of buckets of one level, from the file that shows them. */
export class EmbeddedSource {
  /**
   * @param {any} overview
   * @param {{[view: string]: {rows: PackedRows, data: Uint32Array, index: Map<number, number>}}} views
   */
  constructor(overview, views) {
    this.overview = overview;
    this.views = views;
    this.onArrival = () => {};
    this.filter = '';
    /** @type {Error | undefined} */
    this.failure = undefined;
  }

  get busy() { return false; }

  /**
   * @param {any} overview
   * @returns {Promise<EmbeddedSource>}
   */
  static async open(overview) {
    /** @type {any} */
    const views = {};
    for (const [view, rows] of [['state', overview.rows], ['devices', overview.device_rows], ['nested', overview.nested?.rows], ['code', overview.code_rows]]) {
      if (rows) views[view] = { rows, data: await unpackNumbers(rows.data), index: new Map(rows.tracks.map((track, row) => [track, row])) };
    }
    return new EmbeddedSource(overview, views);
  }

  /** The run of an element of the page. @param {HTMLElement} embedded @returns {Promise<{source: EmbeddedSource, overview: any}>} */
  static async read(embedded) {
    const overview = readJson(embedded.textContent || '{}');
    overview.task_types = overview.types.labels;
    listRows(overview);
    if (overview.nested) overview.views.push({ name: 'nested', label: 'nested sections', rows: overview.nested.list, values: overview.nested.values, isOfThreads: true });
    return { source: await EmbeddedSource.open(overview), overview };
  }

  /** The same as of a server's rows. */
  columns(view, track, from, nsPerPixel, out, outValues) {
    const known = this.views[view];
    const row = known && known.index.get(track);
    if (row === undefined) return true;
    const { rows, data } = known;
    const part = (at) => data.subarray(at * rows.buckets, (at + 1) * rows.buckets);
    joinBuckets(part(row), outValues ? part(rows.tracks.length + row) : null, 0, 2 ** rows.level, rows.first_bucket_ns, from, nsPerPixel, out, outValues);
    return true;
  }

  /**
   * What leads in the bucket of a row that holds a time; null where the file has no such row.
   * @param {string} view
   * @param {number} track
   * @param {number} at
   * @returns {{state: number, value: number, isAlone: boolean} | null} state 255: nothing
   */
  leadingAt(view, track, at) {
    const known = this.views[view];
    if (!known || !known.index.has(track)) return null;
    const hasValues = known.data.length > known.rows.tracks.length * known.rows.buckets;
    const [column, value] = [Uint32Array.of(NOTHING), new Uint32Array(1)];
    this.columns(view, track, at, 1, column, hasValues ? value : null);
    return { state: column[0] & 255, value: value[0], isAlone: ((column[0] >> 8) & 255) === 255 };
  }

  /**
   * Threads in each state for each pixel: exact for all workers. Of other groups the file knows only what each
   * thread did most in each bucket, and for which part of it; the rest stays empty.
   * @param {string} key names the group of tracks
   * @param {number[]} tracks
   * @param {number} from
   * @param {number} nsPerPixel
   * @param {number} pixels
   * @param {number} states
   * @returns {Float64Array} `[pixel][state]`
   */
  stack(key, tracks, from, nsPerPixel, pixels, states) {
    if (key === 'all') {
      const { level, first_bucket_ns: offset, data } = this.overview.stack;
      return sharesOfPixels(data, states, 2 ** level, offset, [0, this.overview.length_ns], from, nsPerPixel, pixels, 1 / 1000);
    }
    const shares = new Float64Array(pixels * states);
    const columns = new Uint32Array(pixels);
    for (const track of tracks) {
      columns.fill(NOTHING);
      this.columns('state', track, from, nsPerPixel, columns, null);
      for (let x = 0; x < pixels; x++) if ((columns[x] & 255) !== 255) shares[x * states + (columns[x] & 255)] += ((columns[x] >> 8) & 255) / 255;
    }
    return shares;
  }

  /** The buckets of which {@link stack} makes pixels. @param {string} key */
  stackBuckets(key) {
    const { level, first_bucket_ns: offset } = key === 'all' ? this.overview.stack : this.overview.rows;
    return { bucketNs: 2 ** level, offset };
  }

  /** A counter of the file. @param {string} name */
  counter(name) {
    const row = this.overview.counter_rows.find((counter) => counter.name === name);
    return row ? { ...row, bucketNs: 2 ** row.level, offset: row.first_bucket_ns } : null;
  }

  /** How many threads run tasks of each type. */
  types() {
    const { data, labels, buckets, level, first_bucket_ns: offset } = this.overview.types;
    if (!this.threads) this.threads = Float32Array.from(data, (thousandths) => thousandths / 1000);
    return { data: this.threads, rows: labels.length, buckets, bucketNs: 2 ** level, offset };
  }

  want() {}
  forget() {}
}

/**
 * Numbers of 32 bits whose planes of bytes were compressed, as like bytes compress better together.
 * @param {string} text
 * @returns {Promise<Uint32Array>}
 */
async function unpackNumbers(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const count = planes.length / 4;
  const data = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    data[i] = planes[i] | (planes[count + i] << 8) | (planes[2 * count + i] << 16) | (planes[3 * count + i] << 24);
  }
  return data;
}
