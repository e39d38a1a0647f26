/** Warns of resources that no node has, such as a misspelt `nvidia.co/gpu`: a gang would wait for them for ever. */
import { meantResource } from "../core/admin/flavor-nodes.ts";
import type { FieldNote, SentJob } from "../core/job/sent.ts";
import { nameHelp } from "../core/pods/nearest-name.ts";
import { readResources } from "../core/pods/resources.ts";
import { compareText } from "../runtime/compare-text.ts";
import { arrayAt, isJsonObject, type Json, objectAt } from "../runtime/json.ts";
import type { IntakeFacts } from "./ports.ts";
import { requestPath } from "./request-path.ts";

/** Every node has these. */
const OF_EVERY_NODE = ["cpu", "memory", "ephemeral-storage"];

type Requested = { readonly resource: string; readonly field: string };

/** The nodes are read only for jobs that request something special. */
export async function checkResources({ spec }: SentJob, facts: IntakeFacts): Promise<readonly FieldNote[]> {
  const requested = Object.entries(spec.replicaSpecs).flatMap(([role, { template = {} }]) => {
    const at = requestPath(["spec", "replicaSpecs", role, "template"]);
    const podSpec = objectAt(template, "spec");
    return ["containers", "initContainers"].flatMap((list) =>
      arrayAt(podSpec, list).flatMap((container, index) => specialOf(container, `${at}.spec.${list}[${index}]`)),
    );
  });
  if (requested.length === 0) return [];
  const known = await facts.nodeResources(requested.map(({ resource }) => resource));
  if (known === null) return [];
  const names = [...known].sort(compareText);
  const help = nameHelp();
  return requested
    .filter(({ resource }) => !known.has(resource))
    .map(({ resource, field }) => {
      return { field, message: `no node of any cluster has ${resource}${meantResource(resource, names, help)}` };
    });
}

/** The special resources of a container, each where it is named first. */
function specialOf(container: Json, at: string): readonly Requested[] {
  const resources = objectAt(container, "resources");
  const found = new Map<string, string>();
  for (const list of ["limits", "requests"]) {
    const amounts = objectAt(resources, list);
    if (!isJsonObject(amounts)) continue;
    for (const [resource, milli] of Object.entries(readResources(amounts))) {
      if (milli <= 0 || OF_EVERY_NODE.includes(resource) || found.has(resource)) continue;
      found.set(resource, `${at}.resources.${list}["${resource}"]`);
    }
  }
  return [...found].map(([resource, field]) => ({ resource, field }));
}
