import { isOneAdmission, LABEL } from "../../core/job/labels.ts";
import type { ObjectView } from "../../core/reconcile/observed.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { KubeClient } from "./client.ts";
import { type KeptObject, objectView, ownJobUid } from "./kept-objects.ts";
import type { KubeFailure } from "./kube-failure.ts";

/** How long the uid of an anchor is used that the reflector has not shown yet. */
const BELIEVED_MS = 30_000;

type AnchorLookup = { readonly kind: "found"; readonly uid: string } | KubeFailure;

export type AnchorOptions = {
  readonly client: Pick<KubeClient, "request">;
  readonly clock: Clock;
  readonly installation: string;
  /** The config map that the reflector has under `namespace/name`. */
  readonly seen: (key: string) => KeptObject | undefined;
};

/**
 * Knows the uids of anchors: from the reflector, or from their creation, or from one GET that concurrent callers share.
 * A uid may be stale; Kubernetes then deletes objects that are created under it.
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

  /** Forgets an anchor. Called for every change that the reflector sees, since its view is newer. */
  forget(key: string): void {
    this.#asked.delete(key);
  }

  /** Finds the anchor of an object. Fails if the anchor's job or admission is not that of the object's labels. */
  find(anchor: { readonly namespace: string; readonly name: string }, labels: Readonly<Record<string, string>>) {
    const key = `${anchor.namespace}/${anchor.name}`;
    const seen = this.#options.seen(key);
    if (seen !== undefined) return Promise.resolve(this.#judge(key, seen.view, seen.jobUid, labels));
    const asked = this.#asked.get(key);
    if (asked !== undefined && this.#options.clock.monotonicMs() - asked.atMs < BELIEVED_MS) return asked.answer;
    return this.#remember(key, this.#get(anchor, labels));
  }

  /**
   * Asks the API server whether an anchor with that uid exists and is not being deleted. False also if it does not
   * answer.
   */
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
      return got.status === 404 ? missing(`${anchor.namespace}/${anchor.name}`, "does not exist") : got;
    const jobUid = ownJobUid(got.object, this.#options.installation);
    return this.#judge(`${anchor.namespace}/${anchor.name}`, objectView(got.object), jobUid, labels);
  }

  #judge(key: string, view: ObjectView, jobUid: string | null, labels: Readonly<Record<string, string>>): AnchorLookup {
    if (view.deleting) return missing(key, "is being deleted");
    const fits = jobUid === labels[LABEL.jobUid] && isOneAdmission(view.labels, labels);
    return fits ? { kind: "found", uid: view.uid } : missing(key, "belongs to another job or admission");
  }
}

function missing(key: string, why: string): KubeFailure {
  return { kind: "failed", status: 404, reason: "AnchorMissing", message: `anchor ${key} ${why}`, retryAfterMs: null };
}
