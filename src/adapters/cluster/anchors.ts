import { LABEL } from "../../core/job/labels.ts";
import type { ObjectView } from "../../core/reconcile/decision.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { KubeClient } from "./client.ts";
import type { ApiFailure } from "./failure.ts";
import { type KeptObject, objectView, ownJobUid } from "./kept-objects.ts";

/** How long the uid of an anchor that the reflector has not shown yet is believed. */
const BELIEVED_MS = 30_000;

export type AnchorLookup = { readonly kind: "found"; readonly uid: string } | ApiFailure;

export type AnchorOptions = {
  readonly client: Pick<KubeClient, "request">;
  readonly clock: Clock;
  readonly installation: string;
  /** What the reflector of config maps has seen under `namespace/name`. */
  readonly seen: (key: string) => KeptObject | undefined;
};

/**
 * Knows the uids of anchors: from the reflector, else from their creation, else from one GET that all who ask at the
 * time share. What is believed may be stale; then what is created under it is garbage-collected by Kubernetes.
 */
export class Anchors {
  readonly #options: AnchorOptions;
  readonly #asked = new Map<string, { readonly answer: Promise<AnchorLookup>; readonly atMs: number }>();

  constructor(options: AnchorOptions) {
    this.#options = options;
  }

  /** Remembers an anchor that was just created. */
  created(key: string, uid: string): void {
    void this.#remember(key, Promise.resolve({ kind: "found", uid }));
  }

  /** Called for every change that the reflector sees: from now on it knows better. */
  forget(key: string): void {
    this.#asked.delete(key);
  }

  /** Finds the anchor of an object by the object's own labels; an anchor of another job or admission does not count. */
  find(anchor: { readonly namespace: string; readonly name: string }, labels: Readonly<Record<string, string>>) {
    const key = `${anchor.namespace}/${anchor.name}`;
    const seen = this.#options.seen(key);
    if (seen !== undefined) return Promise.resolve(this.#judge(key, seen.view, seen.jobUid, labels));
    const asked = this.#asked.get(key);
    if (asked !== undefined && this.#options.clock.monotonicMs() - asked.atMs < BELIEVED_MS) return asked.answer;
    return this.#remember(key, this.#get(anchor, labels));
  }

  /** Asks the server itself whether an anchor is there under that uid, and is not on its way out; false where it does not answer. */
  async lives(
    anchor: { readonly namespace: string; readonly name: string; readonly uid: string },
    signal: AbortSignal,
  ) {
    const path = `/api/v1/namespaces/${anchor.namespace}/configmaps/${anchor.name}`;
    const got = await this.#options.client.request({ method: "GET", path }, signal);
    if (got.kind === "failed") return false;
    const { uid, deleting } = objectView(got.object);
    return uid === anchor.uid && !deleting;
  }

  #remember(key: string, answer: Promise<AnchorLookup>): Promise<AnchorLookup> {
    this.#asked.set(key, { answer, atMs: this.#options.clock.monotonicMs() });
    void answer.then((found) => {
      if (found.kind === "failed" && this.#asked.get(key)?.answer === answer) this.#asked.delete(key);
    });
    return answer;
  }

  async #get(anchor: { readonly namespace: string; readonly name: string }, labels: Readonly<Record<string, string>>) {
    const path = `/api/v1/namespaces/${anchor.namespace}/configmaps/${anchor.name}`;
    const got = await this.#options.client.request({ method: "GET", path });
    if (got.kind === "failed")
      return got.status === 404 ? missing(`${anchor.namespace}/${anchor.name}`, "is absent") : got;
    const jobUid = ownJobUid(got.object, this.#options.installation);
    return this.#judge(`${anchor.namespace}/${anchor.name}`, objectView(got.object), jobUid, labels);
  }

  #judge(key: string, view: ObjectView, jobUid: string | null, labels: Readonly<Record<string, string>>): AnchorLookup {
    if (view.deleting) return missing(key, "is being deleted");
    const fits = jobUid === labels[LABEL.jobUid] && view.labels[LABEL.admission] === labels[LABEL.admission];
    return fits ? { kind: "found", uid: view.uid } : missing(key, "belongs to something else");
  }
}

function missing(key: string, why: string): ApiFailure {
  return { kind: "failed", status: 404, reason: "AnchorMissing", message: `anchor ${key} ${why}`, retryAfterMs: null };
}
