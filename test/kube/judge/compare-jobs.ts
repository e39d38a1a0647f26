/** Compares which jobs Gangway and the API server of the tests refuse for their names, kinds and ports. */
import { create } from "@bufbuild/protobuf";
import { sentJob } from "../../../src/api/job/convert-sent.ts";
import { checkRequest } from "../../../src/api/rpc/check-request.ts";
import type { SentJob } from "../../../src/core/job/request/sent.ts";
import type { Kind } from "../../../src/core/kinds/kind.ts";
import { podName } from "../../../src/core/kinds/pod-name.ts";
import { createRegistry, OWN_ENTRY, type Registry } from "../../../src/core/kinds/registry.ts";
import {
  type BuildTarget,
  createAnchor,
  createParts,
  createService,
  judgedManifest,
} from "../../../src/core/reconcile/objects/build-objects.ts";
import { CreateJobRequestSchema } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { draftJob } from "../../../src/intake/new-job.ts";
import { invariant } from "../../../src/runtime/assert.ts";
import { type JsonObject, stringAt } from "../../../src/runtime/json.ts";
import { bareIntake } from "../../intake/bare-intake.ts";
import { seededRandom } from "../../support/random.ts";
import type { ControlPlane } from "../control-plane.ts";
import { type Difference, makeNamespace, refusalOf } from "./compare.ts";
import { jobLeftOverOf } from "./left-over.ts";
import { type RandomJob, randomJob } from "./random-jobs.ts";

/** Objects of the resources that are compared. */
const RESOURCES: Readonly<Record<string, "pods" | "services" | "configmaps">> = {
  Pod: "pods",
  Service: "services",
  ConfigMap: "configmaps",
};

type JobsComparison = {
  readonly compared: number;
  /** How many jobs both refuse. */
  readonly refused: number;
  /** How many jobs with services, and with config maps of their kind, both accept. */
  readonly accepted: { readonly services: number; readonly maps: number };
  readonly differences: readonly Difference[];
};

/** Compares how the two judge random jobs. The same seed gives the same jobs. */
export async function compareJobs(
  plane: ControlPlane,
  wanted: { readonly count: number; readonly seed: number },
): Promise<JobsComparison> {
  await makeNamespace(plane);
  const random = seededRandom(wanted.seed);
  const differences: Difference[] = [];
  const accepted = { services: 0, maps: 0 };
  let refused = 0;
  for (let number = 0; number < wanted.count; number++) {
    const made = randomJob(number, random);
    const sent = sentOf(made);
    const errors = await gangwayErrors(made);
    const objects = objectsOf(sent, made.kind);
    const refusal = await firstRefusal(plane, objects);
    if (errors.length > 0 !== (refusal !== null)) {
      const what = `job ${number}: ${JSON.stringify({ request: made.request, port: made.kind.defaultPort })}`;
      const side = refusal === null ? "only Gangway refuses" : "only Kubernetes refuses";
      const said = refusal ?? errors.join("\n");
      differences.push({ side, what, said, leftOver: refusal === null ? jobLeftOverOf(errors) : null });
    } else if (refusal !== null) refused++;
    else {
      if (objects.some(({ kind }) => kind === "Service")) accepted.services++;
      if (objects.filter(({ kind }) => kind === "ConfigMap").length > 1) accepted.maps++;
    }
  }
  return { compared: wanted.count, refused, accepted, differences };
}

function sentOf({ request }: RandomJob): SentJob {
  const { job } = create(CreateJobRequestSchema, request);
  const sent = job === undefined ? null : sentJob(job);
  invariant(sent !== null, "a random job has a spec");
  return sent;
}

/** What an operator or a user is told before anything is made: at the start of a service, and at submit. */
async function gangwayErrors(made: RandomJob): Promise<readonly string[]> {
  const kinds = registryOf(made.kind);
  if (typeof kinds === "string") return [kinds];
  const broken = checkRequest(CreateJobRequestSchema, create(CreateJobRequestSchema, made.request));
  const found = await bareIntake(kinds).check({ job: sentOf(made) });
  return [...broken, ...found.filter((note) => !("isWarning" in note))].map(
    ({ field, message }) => `${field} ${message}`,
  );
}

/** The kinds that are served, or why a service with this one does not start. */
function registryOf(kind: Kind): Registry | string {
  if (OWN_ENTRY.kinds.includes(kind)) return createRegistry([OWN_ENTRY]);
  try {
    return createRegistry([OWN_ENTRY, { id: "outside", kinds: [kind] }]);
  } catch (error) {
    return String(error);
  }
}

/** The objects of a job's first admission: its anchor, the config maps of its kind, its services and pods. */
function objectsOf(sent: SentJob, kind: Kind): readonly JsonObject[] {
  const job = draftJob(sent, kind, {});
  const members = Object.fromEntries(
    Object.entries(job.spec.replicaSpecs).map(([role, { replicas }]) => [role, replicas]),
  );
  const build = { installation: "i", clusterDomain: "", initImage: "busybox", kubectlImage: "kubectl" };
  const admission = { number: 1, cluster: "c", members, flavorLabels: {} };
  const target: BuildTarget = { job, kind, admission, build, scheduler: null };
  const slots = Object.entries(members).flatMap(([role, count]) =>
    [...new Set([0, count - 1])].map((index) => ({
      role,
      index,
      name: podName({ job, kind, role, index }),
      attempt: 1,
    })),
  );
  const made = [createAnchor(target), ...slots.map((slot) => createService(target, slot)), ...createParts(target)];
  const manifests = made.flatMap((action) => (action !== null && "manifest" in action ? [action.manifest] : []));
  return [...manifests, ...slots.map((slot) => judgedManifest(target, slot))];
}

async function firstRefusal(plane: ControlPlane, objects: readonly JsonObject[]): Promise<string | null> {
  for (const object of objects) {
    const kind = stringAt(object, "kind") ?? "";
    const resource = RESOURCES[kind];
    const refusal = resource === undefined ? null : await refusalOf(plane, resource, object);
    if (refusal !== null) return `${kind}: ${refusal}`;
  }
  return null;
}
