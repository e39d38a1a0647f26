import {
  arrayAt,
  isJsonObject,
  type JsonObject,
  numberAt,
  objectAt,
  stringAt,
  stringMapAt,
} from "../../../runtime/json.ts";

/** What rules need to know of the whole pod. */
export type WholePod = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: JsonObject;
  /** By name. */
  readonly volumes: ReadonlyMap<string, JsonObject>;
  /** The names of `spec.resourceClaims`. */
  readonly claims: ReadonlySet<string>;
  readonly graceSeconds: number;
  /** False: the pod has user ids of its own. */
  readonly hostUsers: boolean;
  readonly hostNetwork: boolean;
  readonly restartPolicy: string;
  /** Empty: not said. */
  readonly os: string;
};

const GRACE_SECONDS_DEFAULT = 30;

export function wholePod(pod: JsonObject): WholePod {
  const metadata = objectAt(pod, "metadata");
  const spec = objectAt(pod, "spec");
  const named = arrayAt(spec, "volumes").filter(isJsonObject);
  const grace = numberAt(spec, "terminationGracePeriodSeconds") ?? GRACE_SECONDS_DEFAULT;
  return {
    name: stringAt(metadata, "name") ?? "",
    labels: stringMapAt(metadata, "labels"),
    annotations: stringMapAt(metadata, "annotations"),
    spec,
    volumes: new Map(named.map((volume) => [stringAt(volume, "name") ?? "", volume])),
    claims: new Set(arrayAt(spec, "resourceClaims").flatMap((claim) => stringAt(claim, "name") || [])),
    // Kubernetes makes 1 of a negative one.
    graceSeconds: grace < 0 ? 1 : grace,
    hostUsers: spec["hostUsers"] !== false,
    hostNetwork: spec["hostNetwork"] === true,
    restartPolicy: stringAt(spec, "restartPolicy") || "Always",
    os: stringAt(objectAt(spec, "os"), "name") ?? "",
  };
}
