/** Measures a page: what a person would see as broken. */
import type { Page } from "playwright-core";

/** Everything that is wrong with the layout, in words. Empty: nothing is. */
export async function layoutFaults(page: Page): Promise<readonly string[]> {
  return await page.evaluate(() => {
    type Box = { readonly left: number; readonly top: number; readonly right: number; readonly bottom: number };
    const TOUCH_PX = 2;
    const root = document.documentElement;
    const nameOf = (element: Element) =>
      `${element.tagName.toLowerCase()}.${element.className} "${(element.textContent ?? "").slice(0, 40)}"`;
    const within = (one: Box, other: Box): Box => ({
      left: Math.max(one.left, other.left),
      top: Math.max(one.top, other.top),
      right: Math.min(one.right, other.right),
      bottom: Math.min(one.bottom, other.bottom),
    });
    const isSeen = ({ left, top, right, bottom }: Box) => right - left > TOUCH_PX && bottom - top > TOUCH_PX;
    /** The part of a box that its ancestors do not hide. */
    const seenPart = (box: Box, element: Element): Box => {
      let seen = box;
      for (let at: Element | null = element; at !== null; at = at.parentElement) {
        const { overflowX, overflowY, clipPath } = getComputedStyle(at);
        if (clipPath === "inset(50%)") return { left: 0, top: 0, right: 0, bottom: 0 };
        if (overflowX !== "visible" || overflowY !== "visible") seen = within(seen, at.getBoundingClientRect());
      }
      return seen;
    };
    const texts = [...document.querySelectorAll("#page *")].flatMap((element) => {
      const nodes = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
      const lines = nodes.flatMap((node) => {
        const range = document.createRange();
        range.selectNodeContents(node);
        return (node.textContent ?? "").trim() === "" ? [] : [...range.getClientRects()];
      });
      const boxes = lines.map((line) => ({ whole: line, seen: seenPart(line, element) }));
      const shown = boxes.filter(({ seen }) => isSeen(seen));
      return element.tagName === "OPTION" || shown.length === 0 ? [] : [{ element, boxes: shown }];
    });
    const faults: string[] = [];
    if (root.scrollWidth > root.clientWidth)
      faults.push(`the page is ${root.scrollWidth} wide, of ${root.clientWidth}`);
    for (const { element, boxes } of texts) {
      // A text that scrolls can be read; one that is cut on purpose has its whole in a title.
      const scrolls = element.closest("pre, .log-lines") !== null;
      const isSaid = element.closest("[title]") !== null || element.querySelector("[title]") !== null;
      const isCut = boxes.some(({ whole, seen }) => whole.right > seen.right + TOUCH_PX);
      const isOutside = boxes.some(({ whole }) => whole.left < 0 || whole.right > root.clientWidth + TOUCH_PX);
      if (!scrolls && !isSaid && isCut) faults.push(`cut: ${nameOf(element)}`);
      if (!scrolls && !isSaid && isOutside) faults.push(`outside: ${nameOf(element)}`);
    }
    for (const [at, one] of texts.entries()) {
      for (const other of texts.slice(at + 1)) {
        const covers = one.boxes.some((box) => other.boxes.some(({ seen }) => isSeen(within(box.seen, seen))));
        if (covers) faults.push(`overlap: ${nameOf(one.element)} and ${nameOf(other.element)}`);
      }
    }
    return faults;
  });
}
