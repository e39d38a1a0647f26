/** Which keys move in a list. */

type Pressed = Pick<KeyboardEvent, "key" | "metaKey" | "ctrlKey" | "altKey" | "target">;

/** True where keys write text. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** The row to go to from `at`. Null: the key does not move. */
export function moveOf(event: Pressed, { at, count }: { readonly at: number; readonly count: number }): number | null {
  if (count === 0 || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return null;
  const to = targetOf(event.key, at, count);
  return to === null ? null : Math.min(count - 1, Math.max(0, to));
}

function targetOf(key: string, at: number, count: number): number | null {
  switch (key) {
    case "j":
    case "ArrowDown":
      return at + 1;
    case "k":
    case "ArrowUp":
      return at - 1;
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return null;
  }
}
