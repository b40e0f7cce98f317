// From buckets to pixels. A bucket is one 32-bit number, as the server sends it:
//   bits 0–7 class (a state; 255: nothing), 8–15 its share of 255, 16–23 flags, 24–31 share of 255 that is uncertain.
// A track becomes SUB lines of an image, which the canvas stretches to the height of a row.

import { valueColour } from './palette.js';

/** Lines of the image that one track has. */
export const SUB = 6;
/** A bucket in which the track has nothing. */
export const NOTHING = 0x000000ff;

/** Flags, as in the library. */
export const LONG_WAIT = 1, LOST = 2, UNCERTAIN = 4, FINDING = 8, MATCH = 16, OFF_CPU = 32;

/**
 * Joins the buckets that fall into each pixel: the one with the larger share is shown, of values something
 * before nothing; flags are kept from all, so that nothing important vanishes, and the uncertain share is the mean.
 * @param {Uint32Array} buckets from bucket `first` on
 * @param {Uint32Array | null} values one for each bucket, or none
 * @param {number} first number of the first bucket, counted from time 0 at `offset`
 * @param {number} bucketNs width
 * @param {number} offset time of bucket 0
 * @param {number} from time of the left edge
 * @param {number} nsPerPixel
 * @param {Uint32Array} out one number for each pixel
 * @param {Uint32Array | null} outValues
 */
export function joinBuckets(buckets, values, first, bucketNs, offset, from, nsPerPixel, out, outValues) {
  const count = buckets.length;
  const scale = nsPerPixel / bucketNs;
  const base = (from - offset) / bucketNs - first;
  for (let x = 0; x < out.length; x++) {
    let low = Math.floor(base + x * scale);
    let high = Math.ceil(base + (x + 1) * scale);
    if (high <= low) high = low + 1;
    if (low < 0) low = 0;
    if (high > count) high = count;
    let best = NOTHING;
    let bestShare = -1;
    let value = 0;
    let flags = 0;
    let doubt = 0;
    for (let i = low; i < high; i++) {
      const bucket = buckets[i];
      flags |= bucket & 0xff0000;
      doubt += bucket >>> 24;
      const share = (bucket & 0xff) === 255 ? -1 : ((bucket >> 8) & 0xff) + (values && values[i] !== 0 ? 256 : 0);
      if (share > bestShare) {
        bestShare = share;
        best = bucket;
        if (values) value = values[i];
      }
    }
    // Where it is small it is still seen.
    if (doubt) doubt = Math.max(1, Math.round(doubt / (high - low)));
    out[x] = (best & 0xffff) | flags | (doubt << 24);
    if (outValues) outValues[x] = value;
  }
}

/**
 * Paints one track into SUB lines of an image.
 * @param {Uint32Array} columns one bucket for each pixel
 * @param {Uint32Array | null} values where colours come from values and not from states
 * @param {Uint32Array} image
 * @param {number} at index of the first pixel of the first line
 * @param {number} stride pixels of a line
 * @param {import('./palette.js').Theme} theme
 * @param {((value: number) => number) | null} colourOf colour of a value
 * @param {boolean} leaveEmpty whether 0 is nothing at all, and not a thread that has no such value
 * @param {boolean} dim whether to show pale what does not match
 */
export function paintTrack(columns, values, image, at, stride, theme, colourOf = null, leaveEmpty = false, dim = false) {
  let [last, lastColour] = [0, 0];
  for (let x = 0; x < columns.length; x++) {
    const bucket = columns[x];
    const kind = bucket & 0xff;
    let colour = 0;
    if (kind !== 255) {
      if (!values) colour = theme.shades[kind * 16 + ((bucket >> 12) & 15)];
      else if (values[x] === 0) colour = leaveEmpty ? 0 : theme.shades[kind * 16] & 0x50ffffff;
      else if (values[x] === last) colour = lastColour;
      else [last, lastColour] = [values[x], (colour = colourOf ? colourOf(values[x]) : valueColour(theme, values[x]))];
      // Most of it is nothing.
      if (leaveEmpty && kind === 0) colour &= 0x73ffffff;
    }
    const flags = (bucket >> 16) & 0xff;
    if (dim && !(flags & MATCH)) colour &= 0x30ffffff;
    for (let line = 0, p = at + x; line < SUB; line++, p += stride) image[p] = colour;
    if (flags === 0) continue;
    if (flags & LOST) {
      for (let line = 0; line < SUB; line++) if (((x + line) & 3) < 2) image[at + x + line * stride] = theme.lost;
    } else if (flags & UNCERTAIN) {
      // From the bottom up as far as its share of the pixel; hardly any is a row of dots.
      const first = SUB - Math.max(1, Math.round(((bucket >>> 24) / 255) * SUB));
      for (let line = first; line < SUB; line++) if (((x - line) & 3) === 0) image[at + x + line * stride] = theme.uncertain;
    }
    if (flags & OFF_CPU) for (let line = SUB - 2; line < SUB; line++) image[at + x + line * stride] = (x + line) & 1 ? theme.offCpu : theme.pageColour;
    if (flags & LONG_WAIT) image[at + x] = theme.long;
    if (flags & FINDING) image[at + x + (SUB - 1) * stride] = theme.finding;
    if (dim && flags & MATCH) image[at + x] = theme.match;
  }
}

/** Whether a track was there in a bucket: not before its start, nor after its end. @param {number} bucket @param {import('./palette.js').Theme} theme */
export function isThere(bucket, theme) {
  const kind = bucket & 255;
  return kind !== 255 && theme.shades[kind * 16 + 15] !== theme.pageColour;
}

/**
 * Paints where a track is there and has no picture yet.
 * @param {Uint32Array} columns of its states
 * @param {Uint32Array} image
 * @param {number} at index of the first pixel of the first line
 * @param {number} stride pixels of a line
 * @param {import('./palette.js').Theme} theme
 */
export function paintLife(columns, image, at, stride, theme) {
  for (let x = 0; x < columns.length; x++) {
    if (!isThere(columns[x], theme) || image[at + x] !== 0) continue;
    for (let line = 0, p = at + x; line < SUB; line++, p += stride) image[p] = theme.there;
  }
}

/**
 * Paints how many threads are in each state, or in other code by number, stacked from the bottom, into `height` lines.
 * @param {Float64Array} shares `[pixel][state]`: threads in the state
 * @param {number} states
 * @param {number} most threads at full height
 * @param {Uint32Array} image
 * @param {number} at
 * @param {number} stride
 * @param {number} width
 * @param {number} height
 * @param {(state: number) => number} colourOf
 * @param {number[]} order states from the bottom up
 */
export function paintStack(shares, states, most, image, at, stride, width, height, colourOf, order) {
  for (let x = 0; x < width; x++) {
    let filled = 0;
    let y = 0;
    for (const state of order) {
      filled += shares[x * states + state];
      const top = Math.min(height, Math.round((filled / most) * height));
      for (; y < top; y++) image[at + x + (height - 1 - y) * stride] = colourOf(state);
    }
  }
}
