import type { Kind } from "./kind.ts";
import { plainJob } from "./plain-job.ts";
import { pytorchJob } from "./pytorch-job.ts";
import { tfJob } from "./tf-job.ts";

/** The kinds that are served, in the order in which they are listed. */
export const KINDS: readonly Kind[] = [pytorchJob, tfJob, plainJob];

/** Kinds whose name is known and that are not served. */
export const UNSERVED_KINDS: readonly string[] = ["MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "Caffe2Job"];

/** The kind of that name; undefined where it is unknown or not served. */
export function kindOf(name: string): Kind | undefined {
  return KINDS.find((kind) => kind.name === name);
}
