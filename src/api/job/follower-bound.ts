import { FOLLOWED_LOGS_MAX } from "../../core/job/container-log.ts";
import { type RpcError, tooMany } from "../rpc/rpc-error.ts";

/** One stream that follows logs. */
type Follower = {
  readonly caller: string;
  readonly logs: number;
  /** Called when it loses its places. It must end. */
  readonly giveWay: (why: RpcError) => void;
};

/**
 * Bounds the logs that all streams of this process follow together, because each holds a connection to its cluster for
 * as long as its client stays. Callers share the places evenly: one may have all of them while no other asks. When
 * another asks for its share, the newest streams of those beyond theirs end.
 */
export class FollowerBound {
  /** In the order in which they came. */
  readonly #followers = new Set<Follower>();
  #followed = 0;

  /**
   * Reserves a place for each log until the signal is aborted or the result is disposed of. Throws RESOURCE_EXHAUSTED
   * if too few places are left, and the caller would have more than its share.
   */
  reserve(follower: Follower, signal: AbortSignal): Disposable {
    const missing = this.#followed + follower.logs - FOLLOWED_LOGS_MAX;
    const ending = missing > 0 ? this.#thoseBeyond(follower, missing) : [];
    if (ending === null) throw this.#full(follower.logs);
    for (const one of ending) this.#end(one);
    this.#followers.add(follower);
    this.#followed += follower.logs;
    const free = () => {
      this.#free(follower);
      signal.removeEventListener("abort", free);
    };
    signal.addEventListener("abort", free, { once: true });
    if (signal.aborted) free();
    return { [Symbol.dispose]: free };
  }

  /** The streams whose end makes room for the follower. Null: it would take more than an even share. */
  #thoseBeyond({ caller, logs }: Follower, missing: number): readonly Follower[] | null {
    const held = new Map([[caller, 0]]);
    for (const one of this.#followers) held.set(one.caller, (held.get(one.caller) ?? 0) + one.logs);
    const share = FOLLOWED_LOGS_MAX / held.size;
    if ((held.get(caller) ?? 0) + logs > share) return null;
    const ending: Follower[] = [];
    let left = missing;
    for (const one of [...this.#followers].reverse()) {
      if (left <= 0) break;
      const has = held.get(one.caller) ?? 0;
      if (has <= share) continue;
      held.set(one.caller, has - one.logs);
      ending.push(one);
      left -= one.logs;
    }
    return ending;
  }

  #end(follower: Follower): void {
    this.#free(follower);
    const description =
      "followed more logs than its share, and ends here because another caller follows logs too: " +
      "follow fewer replicas at the same time, or read the log without follow";
    follower.giveWay(tooMany("TOO_MANY_FOLLOWED_LOGS", { subject: "this caller", description }));
  }

  #free(follower: Follower): void {
    if (this.#followers.delete(follower)) this.#followed -= follower.logs;
  }

  #full(logs: number): RpcError {
    const description =
      `follow ${this.#followed} logs now, and this stream would follow ${logs} more; ` +
      `at most ${FOLLOWED_LOGS_MAX} can be followed at the same time: retry later, or read the log without follow`;
    return tooMany("TOO_MANY_FOLLOWED_LOGS", { subject: "the clients of this process", description });
  }
}
