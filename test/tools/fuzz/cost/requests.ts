/** The smallest good request of each RPC, and the places where it can grow. */
import type { DescMethod } from "@bufbuild/protobuf";
import { Bank } from "../bank.ts";
import { Chance } from "../chance.ts";
import { SEEDS } from "../seeds.ts";
import { METHODS, shortName } from "../surface.ts";
import type { Tree } from "../tree.ts";
import { memberPlaces, smallTemplate, type Template } from "./members.ts";
import { DOCUMENT_DEPTH_MAX, type Place, placesOf } from "./places.ts";
import { longText } from "./texts.ts";

type Job = Tree & {
  metadata: { annotations: Record<string, string> } & Tree;
  spec: { replicaSpecs: { Worker: { template: Template } }; inputs: Record<string, string> } & Tree;
};

const JOB_METHODS = ["CreateJob", "SimulateJob", "BatchCreateJobs"].map((name) => `JobService.${name}`);

/** A suspended job: nothing of it runs beside the calls that are measured. */
export function smallJob(): Job {
  const Worker = { replicas: 2, template: smallTemplate() };
  return {
    // Calls of the fuzz set limits and policies of other namespaces.
    metadata: { generateName: "grown-", namespace: "grown", annotations: {} },
    spec: { kind: "Job", replicaSpecs: { Worker }, inputs: {}, runPolicy: { suspend: true } },
  };
}

export function smallRequest(method: DescMethod): Tree {
  const name = shortName(method);
  if (name === "JobService.BatchCreateJobs") return { requests: [{ job: smallJob() }] };
  if (name === "JobService.SimulateJob" || name === "JobService.CreateJob") return { job: smallJob() };
  // What reads many things reads all of them: a filter of the smallest request would leave some out.
  if (/\.(List|Watch)/.test(name)) return {};
  return SEEDS[name]?.({ chance: new Chance(7), bank: new Bank(), method }) ?? {};
}

export function placesOfMethod(method: DescMethod): readonly Place[] {
  const places = placesOf(method.input);
  return JOB_METHODS.includes(shortName(method)) ? [...places, ...JOB_PLACES] : places;
}

function jobOf(request: Tree): Job {
  const [first] = (request["requests"] ?? []) as { job?: Job }[];
  const job = first?.job ?? (request["job"] as Job | undefined);
  // Another growth may have replaced the job, or what is in it.
  return job?.metadata !== undefined && job.spec?.replicaSpecs !== undefined ? job : smallJob();
}

const templateOf = (request: Tree) => {
  const { Worker } = jobOf(request).spec.replicaSpecs;
  // Another growth may have replaced the template, or all of them.
  const template = Worker?.template;
  return isTemplate(template) ? template : smallTemplate();
};

function isTemplate(template: Template | undefined): template is Template {
  return template?.metadata?.labels !== undefined && Array.isArray(template.spec?.containers);
}

/** Arguments that take over one long text of the job. */
function uses(name: string, use: string, put: (job: Job, text: string) => void): Place {
  return {
    name,
    limit: null,
    itemBytes: 40,
    grow: (request, size, filling) => {
      const half = Math.ceil(size / 2);
      put(jobOf(request), longText(filling, half * 20));
      templateOf(request).spec.containers[0]["args"] = Array.from({ length: Math.min(60, half) }, () =>
        use.repeat(Math.ceil(half / 60)),
      );
    },
  };
}

const JOB_PLACES: readonly Place[] = [
  ...memberPlaces("template ", templateOf),
  uses("args that use a long annotation", "{{.Annotations.k}}", ({ metadata }, text) => {
    metadata.annotations = { ...metadata.annotations, k: text };
  }),
  uses("args that use a long input", "{{.Inputs.k}}", ({ spec }, text) => {
    spec.inputs = { ...spec.inputs, k: text };
  }),
  {
    name: "replica types{}",
    limit: null,
    itemBytes: 60,
    grow: (request, size, { unit }) => {
      const types = Array.from({ length: size }, (_, at) => [`${unit}${at}`, { template: smallTemplate() }]);
      Object.assign(jobOf(request).spec.replicaSpecs, Object.fromEntries(types));
    },
  },
  {
    name: "deep template",
    limit: null,
    itemBytes: 8,
    grow: (request, size) => {
      let value: Tree = {};
      for (let level = 0; level < Math.min(size, DOCUMENT_DEPTH_MAX); level += 1)
        value = level % 2 === 0 ? { a: value } : { a: [value] };
      Object.assign(templateOf(request).spec, { a: value });
    },
  },
];

export const GROWING: readonly { readonly method: DescMethod; readonly places: readonly Place[] }[] = METHODS.filter(
  ({ parent }) => parent.typeName.startsWith("gangway."),
)
  .map((method) => ({ method, places: placesOfMethod(method) }))
  .filter(({ places }) => places.length > 0);
