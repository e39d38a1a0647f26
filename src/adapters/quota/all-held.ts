import type { Desk } from "./desk.ts";

const HELD_PAGE = 500;

/** Everything that the counters hold; one that is held all the while comes at least once. */
export async function* allHeld(desk: Desk) {
  for (let after: string | null = null; ; ) {
    const page: Awaited<ReturnType<Desk["counters"]["held"]>> = await desk.counters.held(after, HELD_PAGE);
    yield* page.tokens;
    if (page.next === null) return;
    after = page.next;
  }
}
