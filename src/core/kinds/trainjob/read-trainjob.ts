/** Reads the spec of a manifest of `trainer.kubeflow.org/v1alpha1`, with the runtime that it names. */
import { type JsonObject, stringMapAt } from "../../../runtime/json.ts";
import { DNS_1035_LABEL } from "../../job/names.ts";
import { readJobSet } from "../jobset/read-jobset.ts";
import type { ReadSpec } from "../manifest/read-spec.ts";
import { SentReader, sentOnly } from "../manifest/sent-reader.ts";
import { resolveRuntime } from "./resolve-runtime.ts";
import { type RuntimeRef, readTrainJobSpec } from "./train-job-spec.ts";

const REF = "spec.runtimeRef";
/** Where the JobSet of a runtime stands in it. */
const JOBSET = "template.spec";

/**
 * The TrainJob becomes the JobSet of its runtime. Errors in that are errors of the runtime, or of what the TrainJob
 * makes of it.
 */
export const readTrainJob: ReadSpec = (reader, spec, metadata, { runtimeOf }) => {
  const trainJob = readTrainJobSpec(reader, spec);
  const jobName = metadata.name ?? metadata.generateName ?? "";
  if (!DNS_1035_LABEL.test(metadata.name ?? `${jobName}x`)) {
    reader.fail("metadata.name", "must be a DNS label: lower-case letters, digits and dashes, with a letter first");
  }
  const { runtime: ref } = trainJob;
  const runtime = ref.name === "" ? null : runtimeOf(ref);
  if (runtime === null) {
    if (ref.name !== "") reader.fail(`${REF}.name`, missing(ref));
    return { spec: { replicaSpecs: {} }, sources: new Map() };
  }
  const resolved = resolveRuntime(reader, { trainJob, runtime });
  const { ttlSecondsAfterFinished: _ofJobSet, suspend: _suspend, ...jobSet } = resolved.spec;
  const inner = new SentReader();
  const annotations = stringMapAt(resolved.metadata, "annotations");
  const read = readJobSet(inner, jobSet, { ...metadata, annotations }, { runtimeOf });
  for (const { path, message } of inner.errors) reader.fail(REF, `${inRuntime(path)} ${message}`);
  const { suspend, activeDeadlineSeconds } = trainJob;
  const kindSpec: JsonObject = { ...read.spec.kindSpec, ...resolved.fields, runtimeRef: { ...ref } };
  return {
    spec: { ...read.spec, runPolicy: sentOnly({ suspend, activeDeadlineSeconds }), kindSpec },
    sources: new Map([
      ["runPolicy.suspend", "spec.suspend"],
      ["runPolicy.activeDeadlineSeconds", "spec.activeDeadlineSeconds"],
      ["kindSpec", `${REF}.${JOBSET}`],
      ...[...read.sources]
        .filter(([member]) => member.startsWith("replicaSpecs"))
        .map(([member, path]) => [member, `${REF}.${inRuntime(path)}`] as const),
    ]),
  };
};

function missing({ kind, name }: RuntimeRef): string {
  const where = kind === "TrainingRuntime" ? "in this namespace" : "in this installation";
  return `is ${name.slice(0, 63)}: there is no ${kind} of this name ${where}; gangway runtime apply -f FILE makes one`;
}

/** The path of a JobSet's member, as a runtime has it. */
function inRuntime(path: string): string {
  return path.startsWith("spec") ? `${JOBSET}${path.slice("spec".length)}` : path;
}
