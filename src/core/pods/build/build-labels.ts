import { compareText } from "../../../runtime/compare-text.ts";
import { LABEL } from "../../job/labels.ts";
import type { BuildConfig } from "./build-config.ts";

/** The job and admission that an object belongs to. */
export type Ownership = {
  readonly job: { readonly uid: string; readonly name: string; readonly namespace: string };
  readonly operatorName: string;
  readonly admission: number;
  /** The fence of the admission. Omitted: it has none. */
  readonly fence?: string | undefined;
  readonly config: Pick<BuildConfig, "installation">;
};

/** The labels that every object of an admission carries. */
export function admissionLabels(of: Ownership): Record<string, string> {
  const { fence } = of;
  return { ...numberLabels(of), ...(fence === undefined ? {} : { [LABEL.fence]: fence }) };
}

/** The labels that tell an admission of a job by its number alone. */
export function numberLabels(of: Omit<Ownership, "fence">): Record<string, string> {
  const { job, operatorName, admission, config } = of;
  return {
    [LABEL.jobName]: job.name,
    [LABEL.operatorName]: operatorName,
    [LABEL.jobUid]: job.uid,
    [LABEL.admission]: String(admission),
    [LABEL.installation]: config.installation,
  };
}

/** The labels that every object of a job carries, whatever its admission. */
export function jobLabels(ofJob: Omit<Ownership, "admission" | "fence">): Record<string, string> {
  const { [LABEL.admission]: _admission, ...labels } = numberLabels({ ...ofJob, admission: 0 });
  return labels;
}

/** The labels that tell the replicas of a job apart. */
export function replicaLabels(role: string, index: number): Record<string, string> {
  return { [LABEL.replicaType]: role.toLowerCase(), [LABEL.replicaIndex]: String(index) };
}

/**
 * The labels that select the pods of one replica type in their cluster. Source: Kubeflow's `GenLabelSelector`.
 * `operatorName` undefined: the kind is not served any more.
 */
export function replicaSelector(
  job: { readonly name: string },
  { role, operatorName }: { readonly role: string; readonly operatorName: string | undefined },
): Record<string, string> {
  return {
    [LABEL.jobName]: job.name,
    ...(operatorName === undefined ? {} : { [LABEL.operatorName]: operatorName }),
    [LABEL.replicaType]: role.toLowerCase(),
  };
}

/** Such labels as text, sorted by key, as Kubernetes' `FormatLabelSelector` writes them. */
export function selectorText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .sort(([a], [b]) => compareText(a, b))
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
}
