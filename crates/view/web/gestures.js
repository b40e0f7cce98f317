// Mouse, touch and keys, turned into what a timeline understands.

/**
 * Commands of a timeline.
 * @typedef {{
 *   canvas: HTMLCanvasElement, setGutter: (pixels: number) => void,
 *   zoom: (factor: number, x?: number) => void, pan: (pixels: number) => void, scroll: (pixels: number) => boolean,
 *   showAll: () => void, select: (from: number, to: number) => void, clearSelection: () => void,
 *   hover: (x: number, y: number) => void, leave: () => void, press: (x: number, y: number) => void,
 *   moveFocus: (rows: number) => void, stepSection: (step: 'next' | 'previous') => void, openFocus: () => void,
 *   timeAt: (x: number) => number, plotLeft: () => number, zoomToSelection: () => void, markSelection: () => void, toggle: () => void,
 * }} Target
 */

/** Pixels that a pointer may move and still count as a click. */
const STILL = 4;

/**
 * Listens on the target's canvas.
 * @param {Target} target
 * @returns {(event: KeyboardEvent) => boolean} does what a key asks for, wherever it was pressed; false where it asks for nothing
 */
export function listen(target) {
  const canvas = target.canvas;
  /** @type {Map<number, {x: number, y: number}>} */
  const pointers = new Map();
  let begun = { x: 0, y: 0, selecting: false, sizing: false, moved: false };
  /** Whether a point is at the border between names and rows, which can be moved. */
  const isBorder = (here, event) => Math.abs(here.x - target.plotLeft()) <= (event.pointerType === 'touch' ? 10 : 3);
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  canvas.addEventListener('wheel', (event) => {
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 200 : 1;
    // Where there is nothing to scroll to here, the page scrolls.
    let taken = true;
    if (event.ctrlKey || event.metaKey) target.zoom(Math.exp(event.deltaY * unit * 0.0025), at(event).x);
    else if (event.shiftKey) target.pan((event.deltaY || event.deltaX) * unit);
    else {
      if (event.deltaX) target.pan(event.deltaX * unit);
      if (event.deltaY) taken = target.scroll(event.deltaY * unit) || Boolean(event.deltaX);
    }
    if (taken) event.preventDefault();
  }, { passive: false });

  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    const here = at(event);
    pointers.set(event.pointerId, here);
    canvas.setPointerCapture(event.pointerId);
    target.leave();
    if (pointers.size === 1) begun = { ...here, selecting: event.shiftKey && here.x >= target.plotLeft() && !isBorder(here, event), sizing: isBorder(here, event), moved: false };
    else begun.moved = true;
  });

  canvas.addEventListener('pointermove', (event) => {
    const here = at(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      target.hover(here.x, here.y);
      if (isBorder(here, event)) canvas.style.cursor = 'col-resize';
      return;
    }
    if (Math.abs(here.x - begun.x) + Math.abs(here.y - begun.y) > STILL) begun.moved = true;
    if (begun.sizing && pointers.size === 1) target.setGutter(here.x);
    else if (pointers.size === 2) {
      const other = [...pointers.entries()].find(([id]) => id !== event.pointerId);
      if (other) {
        const old = Math.abs(before.x - other[1].x);
        const now = Math.abs(here.x - other[1].x);
        if (old > 10 && now > 10) target.zoom(old / now, (here.x + other[1].x) / 2);
        target.pan((before.x - here.x) / 2);
      }
    } else if (begun.selecting) {
      target.select(target.timeAt(begun.x), target.timeAt(here.x));
    } else if (begun.moved) {
      target.pan(before.x - here.x);
      target.scroll(before.y - here.y);
    }
    pointers.set(event.pointerId, here);
  });

  const end = (event) => {
    const here = at(event);
    if (pointers.delete(event.pointerId) && pointers.size === 0 && !begun.moved) target.press(here.x, here.y);
  };
  canvas.addEventListener('pointerup', end);
  canvas.addEventListener('pointercancel', (event) => pointers.delete(event.pointerId));
  canvas.addEventListener('pointerleave', () => { if (pointers.size === 0) target.leave(); });
  canvas.addEventListener('dblclick', (event) => target.zoom(0.25, at(event).x));

  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const page = canvas.clientHeight * 0.8;
    /** @type {{[key: string]: () => void}} */
    const actions = {
      '+': () => target.zoom(0.5), '=': () => target.zoom(0.5), w: () => target.zoom(0.5),
      '-': () => target.zoom(2), s: () => target.zoom(2),
      ArrowLeft: () => target.pan(-80), a: () => target.pan(-80), ArrowRight: () => target.pan(80), d: () => target.pan(80),
      ArrowUp: () => target.moveFocus(-1), ArrowDown: () => target.moveFocus(1),
      PageUp: () => target.scroll(-page), PageDown: () => target.scroll(page),
      '[': () => target.setGutter(target.plotLeft() - 20), ']': () => target.setGutter(target.plotLeft() + 20),
      m: target.markSelection, Home: target.showAll, 0: target.showAll, f: target.zoomToSelection,
      '.': () => target.stepSection('next'), ',': () => target.stepSection('previous'),
      Enter: target.openFocus, ' ': target.toggle, Escape: target.clearSelection,
    };
    const action = actions[event.key];
    if (!action) return false;
    action();
    event.preventDefault();
    return true;
  };
  canvas.addEventListener('keydown', key);
  return key;
}
