// Paper: white, without controls, and with what a screen would scroll to or unfold. What is brief stays folded.

/** Image points for each point of the page: printers are finer than screens. */
export const PAPER_RATIO = 2;

/** Whether the page is being printed. */
export function isPrinting() {
  return document.documentElement.dataset.printing !== undefined;
}

/** What the focus comes to, in the order of the page. @param {HTMLElement} page */
const stopsOf = (page) => /** @type {HTMLElement[]} */ ([...page.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]);

/**
 * What builds a page anew and leaves the focus where it was. Paper has fewer places for it: it comes back with the screen.
 * @param {HTMLElement} page
 * @param {() => void} build
 */
export function keepingFocus(page, build) {
  /** @type {number | undefined} */
  let before;
  return () => {
    const focused = stopsOf(page).indexOf(/** @type {HTMLElement} */ (document.activeElement));
    build();
    if (isPrinting()) before = before ?? focused;
    else {
      stopsOf(page)[before ?? focused]?.focus({ preventScroll: true });
      before = undefined;
    }
  };
}

/**
 * Turns the page light before it is printed and calls `begin`; calls `end` when it is as before.
 * @param {() => void} begin
 * @param {() => void} end
 */
export function onPaper(begin, end) {
  const root = document.documentElement;
  /** @type {string | undefined} */
  let chosen;
  /** @type {HTMLDetailsElement[]} */
  let folded = [];
  /** @param {boolean} printing */
  const turn = (printing) => {
    if (printing === isPrinting()) return;
    if (printing) {
      chosen = root.dataset.theme;
      Object.assign(root.dataset, { printing: '', theme: 'light' });
      // It draws the page anew.
      begin();
      folded = [.../** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll('details:not(.brief)'))].filter((part) => !part.open);
      folded.forEach((part) => { part.open = true; });
      return;
    }
    delete root.dataset.printing;
    folded.forEach((part) => { part.open = false; });
    if (chosen === undefined) delete root.dataset.theme;
    else root.dataset.theme = chosen;
    end();
  };
  window.addEventListener('beforeprint', () => turn(true));
  window.addEventListener('afterprint', () => turn(false));
  // Programs that print without a window tell only that the medium changes.
  matchMedia('print').addEventListener('change', (event) => turn(event.matches));
}
