/** Warns of resources that no node has, such as a misspelt `nvidia.co/gpu`: a gang would wait for them for ever. */
import { meantResource } from "../core/admin/flavor-nodes.ts";
import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import { nameHelp } from "../core/pods/nearest-name.ts";
import { resourceOfContainer } from "../core/pods/platform-resources.ts";
import type { PodConfig } from "../core/pods/pod-config.ts";
import { readResources } from "../core/pods/resources.ts";
import { compareText } from "../runtime/compare-text.ts";
import { arrayAt, isJsonObject, type Json, objectAt } from "../runtime/json.ts";
import type { JudgedTemplates } from "./judged-templates.ts";
import type { IntakeFacts } from "./ports.ts";
import { requestPath } from "./request-path.ts";

/** Every node has these. */
const OF_EVERY_NODE = ["cpu", "memory", "ephemeral-storage"];

type Requested = { readonly resource: string; readonly field: string };

/** The nodes are read only for jobs that request something special. Leaves out templates that are too large. */
export async function checkResources(
  { spec }: SentJob,
  facts: IntakeFacts,
  { gpuResourceName, tooLarge }: Pick<PodConfig, "gpuResourceName"> & Pick<JudgedTemplates, "tooLarge">,
): Promise<readonly FieldNote[]> {
  const requested = Object.entries(spec.replicaSpecs).flatMap(([role, { template = {} }]) => {
    if (tooLarge.has(role)) return [];
    const at = requestPath(["spec", "replicaSpecs", role, "template"]);
    const podSpec = objectAt(template, "spec");
    return ["containers", "initContainers"].flatMap((list) =>
      arrayAt(podSpec, list).flatMap((container, index) => {
        return specialOf(container, { at: `${at}.spec.${list}[${index}]`, gpuResourceName });
      }),
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

/** The special resources that a container gets, each where it is named first. */
function specialOf(
  container: Json,
  { at, gpuResourceName }: { readonly at: string; readonly gpuResourceName: string },
): readonly Requested[] {
  const resources = objectAt(container, "resources");
  const found = new Map<string, string>();
  for (const list of ["limits", "requests"]) {
    const amounts = objectAt(resources, list);
    if (!isJsonObject(amounts)) continue;
    for (const [name, milli] of Object.entries(readResources(amounts))) {
      const resource = resourceOfContainer(name, gpuResourceName);
      if (milli <= 0 || resource === null || OF_EVERY_NODE.includes(resource) || found.has(resource)) continue;
      found.set(resource, `${at}.resources.${list}["${name}"]`);
    }
  }
  return [...found].map(([resource, field]) => ({ resource, field }));
}
