import { LABEL } from "../../job/labels.ts";
import type { BuildConfig } from "./build-config.ts";

/** The job and admission that an object belongs to. */
export type Ownership = {
  readonly job: { readonly uid: string; readonly name: string; readonly namespace: string };
  readonly operatorName: string;
  readonly admission: number;
  readonly config: Pick<BuildConfig, "installation">;
};

/** The labels that every object of an admission carries. */
export function admissionLabels({ job, operatorName, admission, config }: Ownership): Record<string, string> {
  return {
    [LABEL.jobName]: job.name,
    [LABEL.operatorName]: operatorName,
    [LABEL.jobUid]: job.uid,
    [LABEL.admission]: String(admission),
    [LABEL.installation]: config.installation,
  };
}

/** The labels that tell the replicas of a job apart. */
export function replicaLabels(role: string, index: number): Record<string, string> {
  return { [LABEL.replicaType]: role.toLowerCase(), [LABEL.replicaIndex]: String(index) };
}
