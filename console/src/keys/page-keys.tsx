/** The keys that work in every view. */
import { useEffect, useRef } from "react";
import { goTo } from "../router/location.tsx";
import { JOBS_PATH, OVERVIEW_PATH } from "../router/path.ts";
import { isTyping } from "./list-keys.ts";

/** The second key of a pair comes within this time. */
const PAIR_MS = 1_500;
const PLACES: Readonly<Record<string, string>> = { o: OVERVIEW_PATH, j: JOBS_PATH };

/** Marks the input that `/` leads to. */
export const FILTER_ID = "filter";

export function usePageKeys(showHelp: () => void): void {
  /** When the first key of a pair was pressed. */
  const first = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey) return;
      if (isTyping(event.target)) leaveOnEscape(event);
      else first.current = pressed(event, first.current, showHelp);
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [showHelp]);
}

/** Does what the key means. Returns when a first key of a pair was pressed. */
function pressed(event: KeyboardEvent, firstMs: number, showHelp: () => void): number {
  const place = event.timeStamp - firstMs < PAIR_MS ? PLACES[event.key] : undefined;
  if (place !== undefined) goTo(place);
  else if (event.key === "?") showHelp();
  else if (event.key === "/") {
    event.preventDefault();
    document.getElementById(FILTER_ID)?.focus();
  }
  return event.key === "g" ? event.timeStamp : Number.NEGATIVE_INFINITY;
}

function leaveOnEscape({ key, target }: KeyboardEvent): void {
  if (key === "Escape" && target instanceof HTMLElement) target.blur();
}
