/** A bench and its child processes: each order is answered by one message. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { WAIT_MS_MAX, within } from "../../support/bounded.ts";

type Named = { readonly kind: string };

/** The next message of the child. Throws if it is of another kind, or if the child ends first. */
export async function answerOf<Answer extends Named, Kind extends Answer["kind"]>(
  child: ChildProcess,
  kind: Kind,
): Promise<Extract<Answer, { kind: Kind }>> {
  const failed = new AbortController();
  const exited = () => failed.abort();
  child.once("exit", exited);
  try {
    const message = once(child, "message", { signal: failed.signal }) as Promise<[Answer]>;
    const [answer] = await within(`the child's answer ${kind}`, WAIT_MS_MAX, message);
    if (answer.kind !== kind) throw new Error(`the child answered ${answer.kind}, not ${kind}`);
    return answer as Extract<Answer, { kind: Kind }>;
  } finally {
    child.removeListener("exit", exited);
  }
}

/** Functions that send an order to a child, and return its answer. */
export function ordersTo<Order extends Named, Answer extends Named>() {
  return async <Kind extends Answer["kind"]>(child: ChildProcess, order: Order, kind: Kind) => {
    const answer = answerOf<Answer, Kind>(child, kind);
    child.send(order);
    return await answer;
  };
}
