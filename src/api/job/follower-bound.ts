import { FOLLOWED_LOGS_MAX } from "../../core/job/container-log.ts";
import { type RpcError, tooMany } from "../rpc/rpc-error.ts";

/**
 * Bounds the logs that all streams of this process follow together, because each holds a connection to its cluster for
 * as long as its client stays.
 */
export class FollowerBound {
  #followed = 0;

  /**
   * Reserves a place for each log until the signal is aborted or the result is disposed of. Throws RESOURCE_EXHAUSTED
   * if too few places are left.
   */
  reserve(logs: number, signal: AbortSignal): Disposable {
    if (this.#followed + logs > FOLLOWED_LOGS_MAX) throw this.#full(logs);
    this.#followed += logs;
    let reserved = logs;
    const free = () => {
      this.#followed -= reserved;
      reserved = 0;
      signal.removeEventListener("abort", free);
    };
    signal.addEventListener("abort", free, { once: true });
    if (signal.aborted) free();
    return { [Symbol.dispose]: free };
  }

  #full(logs: number): RpcError {
    const description =
      `follow ${this.#followed} logs now, and this stream would follow ${logs} more; ` +
      `at most ${FOLLOWED_LOGS_MAX} can be followed at the same time: retry later, or read the log without follow`;
    return tooMany("TOO_MANY_FOLLOWED_LOGS", { subject: "the clients of this process", description });
  }
}
