import type { ApiRequest, ApiResult, KubeClient } from "../../src/adapters/cluster/client.ts";
import type { ApiFailure } from "../../src/adapters/cluster/failure.ts";
import { failureFromStatus, unreachable } from "../../src/adapters/cluster/failure.ts";
import type { SimModel } from "../../src/adapters/simcluster/model.ts";
import { answer, parseRoute } from "../../src/adapters/simcluster/routes.ts";
import { StatusError } from "../../src/adapters/simcluster/status-error.ts";
import type { Json } from "../../src/runtime/json.ts";

/** What becomes of a write on its way; reads always arrive. */
export type Fate = "arrives" | "lost" | "answerLost" | "doubled" | "late";

/** Calls straight into a model, as if over a network that `fateOf` decides on. Late ones arrive when `deliver` says so. */
export class SimKube implements Pick<KubeClient, "request"> {
  readonly #model: SimModel;
  readonly #fateOf: () => Fate;
  readonly #late: ApiRequest[] = [];

  constructor(model: SimModel, fateOf: () => Fate) {
    this.#model = model;
    this.#fateOf = fateOf;
  }

  async request(request: ApiRequest): Promise<ApiResult> {
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

  /** Lets the calls arrive that were under way all the time, in any order. */
  deliver(shuffle: (requests: ApiRequest[]) => ApiRequest[]): void {
    for (const request of shuffle(this.#late.splice(0))) this.#call(request);
  }

  #call(request: ApiRequest): ApiResult {
    try {
      const { body } = answer(this.#model, parseRoute(request.path, this.#model.store), {
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

function noAnswer(): ApiFailure {
  return unreachable(new Error("no answer came"));
}
