import type { KubeClient, KubeRequest, KubeResult } from "../../../src/adapters/cluster/client.ts";
import type { KubeFailure } from "../../../src/adapters/cluster/kube-failure.ts";
import { failureFromStatus, unreachable } from "../../../src/adapters/cluster/kube-failure.ts";
import { handleRequest, parseRoute } from "../../../src/adapters/simcluster/api/routes.ts";
import type { SimModel } from "../../../src/adapters/simcluster/model.ts";
import { StatusError } from "../../../src/adapters/simcluster/objects/status-error.ts";
import type { Json } from "../../../src/runtime/json.ts";

/** The fate of a write on its way. Reads always arrive, unless the cluster is dark. */
export type Fate = "arrives" | "lost" | "answerLost" | "doubled" | "late";

/**
 * Calls a model as if over a network, whose faults `fateOf` decides. Late calls arrive with `deliver`.
 */
export class SimKube implements Pick<KubeClient, "request"> {
  readonly #model: SimModel;
  readonly #fateOf: () => Fate;
  readonly #isDark: () => boolean;
  readonly #late: KubeRequest[] = [];

  /** `isDark`: nothing arrives, but for writes that were late before. Omitted: it never is. */
  constructor(model: SimModel, fateOf: () => Fate, isDark: () => boolean = () => false) {
    this.#model = model;
    this.#fateOf = fateOf;
    this.#isDark = isDark;
  }

  async request(request: KubeRequest): Promise<KubeResult> {
    if (this.#isDark()) return noAnswer();
    switch (request.method === "GET" ? "arrives" : this.#fateOf()) {
      case "arrives":
        return this.#call(request);
      case "lost":
        return noAnswer();
      case "answerLost":
        this.#call(request);
        return noAnswer();
      case "doubled":
        this.#call(request);
        return this.#call(request);
      case "late":
        this.#late.push(request);
        return noAnswer();
    }
  }

  /** Delivers the late calls, in any order. */
  deliver(shuffle: (requests: KubeRequest[]) => KubeRequest[]): void {
    for (const request of shuffle(this.#late.splice(0))) this.#call(request);
  }

  #call(request: KubeRequest): KubeResult {
    try {
      const { body } = handleRequest(this.#model, parseRoute(request.path, this.#model.store), {
        method: request.method,
        query: new URLSearchParams(request.query),
        contentType: request.method === "PATCH" ? "application/merge-patch+json" : "application/json",
        body: (request.body ?? null) as Json,
      });
      return { kind: "ok", object: body };
    } catch (error) {
      if (error instanceof StatusError) return failureFromStatus(error.code, error.body());
      throw error;
    }
  }
}

function noAnswer(): KubeFailure {
  return unreachable(new Error("no answer came"));
}
