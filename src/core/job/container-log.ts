/** Requests for the logs of containers, and the answers of clusters. */

/** The most logs that the streams of one process follow at a time. Each holds a connection to a cluster. */
export const FOLLOWED_LOGS_MAX = 256;

/** Names a pod, which must belong to this admission of this job. */
export type LogTarget = {
  readonly cluster: string;
  readonly namespace: string;
  readonly pod: string;
  readonly jobUid: string;
  readonly admission: number;
  /** True: for a stream that follows the log. It shares no connection with those that read a log once. */
  readonly follow: boolean;
};

export type LogRequest = LogTarget & {
  readonly container: string;
  readonly previous: boolean;
  /** Null: from the beginning. */
  readonly tailLines: number | null;
  /** RFC 3339; servers may begin up to a second earlier. Null: from the beginning. */
  readonly sinceTime: string | null;
};

/** A container of a pod, with the part of its state that reading its log needs. */
export type ContainerForLog = {
  readonly name: string;
  /** Identifies one run of the container, also among pods that had the same name one after another. */
  readonly run: string;
  readonly state: "waiting" | "running" | "ended";
  /** Why the container waits; empty in the other states. */
  readonly reason: string;
};

export type PodForLog = { readonly kind: "found"; readonly containers: readonly ContainerForLog[] };

/** The answer of a cluster that did not give a log. */
export type LogFailure = {
  readonly kind: "failed";
  /** The HTTP status; 0 if no answer came. */
  readonly status: number;
  readonly reason: string;
  readonly message: string;
};

/** A line of a container's log, or a piece of one. */
export type LogLine = {
  /** When the cluster received the line, in nanoseconds since 1970. Null: the cluster does not report it. */
  readonly timeNs: bigint | null;
  readonly text: string;
  /** The next piece continues this line. */
  readonly partial: boolean;
};

/** An open log: its lines in the order in which they were written, in portions as they arrive. */
export type OpenLog = { readonly kind: "open"; readonly lines: AsyncIterable<readonly LogLine[]> };
