/** Reads the training runtimes that the manifests of one call name. It serves users of TrainJobs. */
import type { ManifestFacts } from "../../core/kinds/manifest/read-spec.ts";
import { runtimeNamedIn } from "../../core/kinds/trainjob/train-job-spec.ts";
import { type FindRuntime, type RuntimeName, runtimeText } from "../../core/kinds/trainjob/training-runtime.ts";
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { invalidFields } from "../rpc/rpc-error.ts";

/** All runtimes that become jobs in one call: a small manifest may name a large one. */
const BYTES_MAX = 16 * 1024 * 1024;
const NONE: ManifestFacts["runtimeOf"] = () => null;

type Found = { readonly spec: JsonObject; readonly bytes: number } | null;

export class RequestRuntimes {
  readonly #find: FindRuntime;
  readonly #found = new Map<string, Found>();
  #bytesLeft = BYTES_MAX;

  constructor(find: FindRuntime) {
    this.#find = find;
  }

  /**
   * The runtime that the manifest of a request names, which is read once in a call. Throws INVALID_ARGUMENT if the
   * runtimes of the call's manifests are too large together.
   */
  async of({
    job,
    manifest,
  }: {
    readonly job?: Job | undefined;
    readonly manifest?: object | undefined;
  }): Promise<ManifestFacts["runtimeOf"]> {
    const namespace = job?.metadata?.namespace || "default";
    const named = manifest === undefined ? null : runtimeNamedIn(manifest as JsonObject, namespace);
    if (named === null) return NONE;
    const found = await this.#read(named);
    if (found === null) return NONE;
    this.#bytesLeft -= found.bytes;
    if (this.#bytesLeft < 0) {
      const message = `names a runtime with which the jobs of this call have more than ${BYTES_MAX} bytes; send fewer`;
      throw invalidFields([{ field: "manifest.spec.runtimeRef", message }]);
    }
    return () => found.spec;
  }

  async #read(named: RuntimeName): Promise<Found> {
    const key = runtimeText(named);
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    const runtime = await this.#find(named);
    const found = runtime && { spec: runtime.spec, bytes: JSON.stringify(runtime.spec).length };
    this.#found.set(key, found);
    return found;
  }
}
