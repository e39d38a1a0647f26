/** The volume claims of a JobSet. Source: `createVolumeClaims` of JobSet. */
import { arrayAt, type Json, type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import { LABEL } from "../../job/labels.ts";
import type { FieldError } from "../../job/request/sent.ts";
import type { JobSpec } from "../../job/spec.ts";
import type { Gang } from "../kind.ts";

const CLAIMS_MAX = 16;
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const MEMBER = "volumeClaimPolicies";

type Claim = {
  readonly path: string;
  readonly name: string;
  readonly template: JsonObject;
  readonly retained: boolean;
};

function claimsOf(kindSpec: JsonObject): readonly Claim[] {
  return arrayAt(kindSpec, MEMBER).flatMap((policy, at) => {
    const retained = stringAt(objectAt(policy, "retentionPolicy"), "whenDeleted") === "Retain";
    return arrayAt(policy, "templates").map((template, index): Claim => {
      const name = stringAt(objectAt(template, "metadata"), "name") ?? "";
      return { path: `[${at}].templates[${index}]`, name, template: objectAt({ template }, "template"), retained };
    });
  });
}

/** True if volumes go with an admission, and with them what its pods have done. */
export function losesVolumes({ kindSpec }: Pick<JobSpec, "kindSpec">): boolean {
  return claimsOf(kindSpec).some(({ retained }) => !retained);
}

function claimName(claim: string, jobName: string): string {
  return `${claim}-${jobName}`;
}

/** The volumes of the claims that containers of a pod mount. */
export function claimVolumes(kindSpec: JsonObject, podSpec: JsonObject, jobName: string): readonly JsonObject[] {
  const mounted = mountsIn(podSpec);
  return claimsOf(kindSpec)
    .filter(({ name }) => mounted.has(name))
    .map(({ name }) => ({ name, persistentVolumeClaim: { claimName: claimName(name, jobName) } }));
}

function mountsIn(podSpec: Json): ReadonlySet<string> {
  const containers = [...arrayAt(podSpec, "containers"), ...arrayAt(podSpec, "initContainers")];
  return new Set(
    containers.flatMap((one) => arrayAt(one, "volumeMounts").map((mount) => stringAt(mount, "name") ?? "")),
  );
}

/** The claims themselves. `labels`: of each. */
export function claimObjects({ spec, jobName }: Gang, labels: Readonly<Record<string, string>>): readonly JsonObject[] {
  return claimsOf(spec.kindSpec).map(({ name, template, retained }) => {
    const metadata = objectAt(template, "metadata");
    return {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: {
        name: claimName(name, jobName),
        labels: { ...objectAt(metadata, "labels"), ...labels },
        annotations: { ...objectAt(metadata, "annotations"), ...(retained ? { [LABEL.retained]: "true" } : {}) },
      },
      spec: objectAt(template, "spec"),
    };
  });
}

/** `path`: of the kind spec. `podSpecs`: of all groups. */
export function claimErrors(
  kindSpec: JsonObject,
  { path, podSpecs }: { readonly path: string; readonly podSpecs: readonly Json[] },
): readonly FieldError[] {
  const claims = claimsOf(kindSpec);
  const at = `${path}.${MEMBER}`;
  if (claims.length > CLAIMS_MAX) return [{ path: at, message: `must have at most ${CLAIMS_MAX} templates` }];
  const mounted = podSpecs.map(mountsIn);
  return claims.flatMap(({ path: place, name }, index): readonly FieldError[] => {
    const here = `${at}${place}.metadata.name`;
    if (!NAME.test(name))
      return [{ path: here, message: "must be a DNS label: lower-case letters, digits and dashes" }];
    if (claims.findIndex((one) => one.name === name) < index) {
      return [{ path: here, message: `is ${name}, which an earlier claim has` }];
    }
    return mounted.some((mounts) => mounts.has(name))
      ? []
      : [{ path: here, message: "must be mounted by a container" }];
  });
}
