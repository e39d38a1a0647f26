import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";

export const deploy = fileURLToPath(new URL("../../deploy/", import.meta.url));

// biome-ignore lint/suspicious/noExplicitAny: documents as they are written
export type Doc = any;

/** Every object of the Kubernetes manifests, each with the file that it is in. */
export function manifests(): readonly { readonly file: string; readonly doc: Doc }[] {
  const { resources } = kustomization() as { resources: readonly string[] };
  return resources.flatMap((file) => documents(`kubernetes/${file}`).map((doc) => ({ file, doc })));
}

/** Every object of a file. */
export function documents(file: string): readonly Doc[] {
  return parseAllDocuments(readFileSync(deploy + file, "utf8"), { strict: true, merge: false }).map((one) => {
    if (one.errors.length > 0) throw one.errors[0];
    return one.toJS() as Doc;
  });
}

export function kustomization(): Doc {
  return yaml("kubernetes/kustomization.yaml");
}

export function yaml(file: string): Doc {
  return parse(readFileSync(deploy + file, "utf8"));
}

export function filesOf(folder: string): readonly string[] {
  return readdirSync(deploy + folder);
}

/** Deployments and Jobs with their pods' templates and only containers. */
export function workloads(): readonly {
  readonly name: string;
  readonly kind: string;
  readonly doc: Doc;
  readonly pod: Doc;
  readonly container: Doc;
}[] {
  return manifests()
    .filter(({ doc }) => ["Deployment", "Job"].includes(doc.kind))
    .map(({ doc }) => {
      const pod = doc.spec.template;
      return { name: doc.metadata.name, kind: doc.kind, doc, pod, container: pod.spec.containers[0] };
    });
}

export function envOf(container: Doc): ReadonlyMap<string, Doc> {
  return new Map(container.env.map((one: Doc) => [one.name, one]));
}
