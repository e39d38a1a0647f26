/**
 * Adapts the template of a job to the platform that runs it. It serves users who do not know the nodes, defaults and
 * limits of a platform, and operators who set them in one place.
 */
import { compareText } from "../../runtime/compare-text.ts";
import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/request/sent.ts";
import { DOWNLOADER, interfacesOf, storageOf, withCoPilot, withoutStorage } from "./co-pilot.ts";
import { selectGpus, withTolerations } from "./gpu-selectors.ts";
import { mergeMetadata, mergePodSpecs } from "./merge-pod-specs.ts";
import { customizeResources } from "./platform-resources.ts";
import { type AnnotationRequests, annotationPath, POD_ANNOTATION, readAnnotations } from "./pod-annotations.ts";
import type { CoPilotConfig, PlatformResources, PlatformTemplate, PodConfig } from "./pod-config.ts";
import { POD_BYTES_MAX } from "./pod-size.ts";
import { PRIMARY_CONTAINER_ANNOTATION } from "./read/pod-view.ts";
import { secretsBytes, withSecrets } from "./secrets.ts";
import { platformTolerations, resourcesOf, updatePod } from "./update-pod.ts";
import { missingEnv } from "./variables.ts";
import { mapContainers } from "./with-named.ts";

/** The platform, the namespace and the containers that a template is adapted to. */
export type Shaping = {
  readonly config: PodConfig;
  readonly namespace: string;
  readonly interruptible: boolean;
  /** The default primary container, if the template's annotation names none. */
  readonly primaryContainer: string;
};

export type ShapeOutcome =
  | { readonly kind: "shaped"; readonly template: JsonObject }
  /** Requests of its annotations that the platform cannot meet. Paths start at the template. */
  | { readonly kind: "refused"; readonly errors: readonly FieldError[] };

/**
 * Adapts a template to its platform, in this order: resources and environment of its containers, co-pilot, defaults of
 * the platform, the pod template that it is built on, GPUs, secrets. This happens when a job is created, so that the
 * planner places the pods that will run. `buildPod` adds the facts that are known only for a single pod. Deterministic
 * and idempotent.
 */
export function shapeTemplate(template: JsonObject, shaping: Shaping): ShapeOutcome {
  const errors = checkAnnotations(template, shaping);
  if (errors.length > 0) return { kind: "refused", errors };
  const requests = readAnnotations(template);
  const found = findTemplate(requests, shaping);
  const metadata = metadataOn(shaping.config, found, template);
  const podSpec = objectAt(template, "spec");
  const primaryContainer = primaryNamedBy(metadata) || shaping.primaryContainer;
  const shaped = shapeSpec(podSpec, requests, found, { ...shaping, primaryContainer });
  const described = Object.keys(metadata).length === 0 ? {} : { metadata };
  return { kind: "shaped", template: { ...template, ...described, spec: shaped } };
}

/** Checks the annotations of a template. Of the spec, this reads only the names of containers. */
export function checkAnnotations(
  template: JsonObject,
  shaping: Pick<Shaping, "config" | "namespace">,
): readonly FieldError[] {
  const requests = readAnnotations(template);
  const found = findTemplate(requests, shaping);
  const primary = primaryNamedBy(metadataOn(shaping.config, found, template));
  return [
    ...requests.errors,
    ...missing(requests, found, shaping.config),
    ...noSuchContainer(primary, objectAt(template, "spec")),
    ...tooManySecrets(requests, [objectAt(template, "spec"), objectAt(found?.template, "spec")]),
  ];
}

function metadataOn(
  { defaultLabels: labels, defaultAnnotations: annotations }: PodConfig,
  base: PlatformTemplate | null,
  template: JsonObject,
): JsonObject {
  const defaults = Object.entries({ labels, annotations }).filter(([, map]) => Object.keys(map).length > 0);
  const ofBase = mergeMetadata(Object.fromEntries(defaults), objectAt(base?.template, "metadata"));
  return mergeMetadata(ofBase, objectAt(template, "metadata"));
}

function primaryNamedBy(metadata: JsonObject): string {
  return stringMapAt(metadata, "annotations")[PRIMARY_CONTAINER_ANNOTATION] ?? "";
}

/** Each container gets all keys, so their size is computed before. */
function tooManySecrets({ secrets }: AnnotationRequests, podSpecs: readonly JsonObject[]): readonly FieldError[] {
  const lists = podSpecs.flatMap((spec) => [arrayAt(spec, "containers"), arrayAt(spec, "initContainers")]);
  const containers = lists.reduce((sum, { length }) => sum + length, 0);
  const bytes = secretsBytes(secrets) * containers;
  if (bytes <= POD_BYTES_MAX) return [];
  const message =
    `has ${secrets.length} keys, which are ${bytes} bytes of JSON in ${containers} containers: ` +
    `at most ${POD_BYTES_MAX} are allowed`;
  return [{ path: annotationPath(POD_ANNOTATION.secrets), message }];
}

/** A pod whose primary container does not exist would never end. */
function noSuchContainer(name: string, podSpec: JsonObject): readonly FieldError[] {
  const names = arrayAt(podSpec, "containers").map((container) => stringAt(container, "name") ?? "");
  if (name === "" || names.includes(name)) return [];
  const message = `is "${name.slice(0, 80)}": must be one of the template's containers: ${names.join(", ")}`;
  return [{ path: annotationPath(PRIMARY_CONTAINER_ANNOTATION), message }];
}

/**
 * The pod template of that name in the namespace, else in the platform's own. Source: Flyte's
 * `PodTemplateStore.LoadOrDefault`.
 */
export function loadOrDefault(
  { podTemplates, podTemplateNamespace }: Pick<PodConfig, "podTemplates" | "podTemplateNamespace">,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): PlatformTemplate | null {
  const named = podTemplates.filter((one) => one.name === name);
  const own = named.find((one) => one.namespace === namespace);
  return own ?? named.find((one) => one.namespace === podTemplateNamespace) ?? null;
}

function findTemplate(
  { podTemplate }: AnnotationRequests,
  { config, namespace }: Pick<Shaping, "config" | "namespace">,
): PlatformTemplate | null {
  const name = podTemplate || config.defaultPodTemplateName;
  return name === "" ? null : loadOrDefault(config, { namespace, name });
}

function missing(
  requests: AnnotationRequests,
  found: PlatformTemplate | null,
  config: PodConfig,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (requests.podTemplate !== "" && found === null) {
    const name = requests.podTemplate.slice(0, 80);
    const message = `is "${name}": this namespace and the platform have no such pod template`;
    errors.push({ path: annotationPath(POD_ANNOTATION.podTemplate), message });
  }
  for (const place of ["inputs", "outputs"] as const) {
    if (requests[place] === "" || config.coPilot !== undefined) continue;
    errors.push({
      path: annotationPath(POD_ANNOTATION[place]),
      message: "is not allowed: this platform has no co-pilot, which copies inputs and outputs",
    });
  }
  return config.coPilot === undefined ? errors : [...errors, ...withoutInterface(requests, config.coPilot)];
}

/** The co-pilot of Flyte copies inputs and outputs one by one, so it needs their names and types. */
function withoutInterface(requests: AnnotationRequests, coPilot: CoPilotConfig): readonly FieldError[] {
  const needed = interfacesOf(coPilot);
  const annotations = { inputs: POD_ANNOTATION.inputInterface, outputs: POD_ANNOTATION.outputInterface } as const;
  return (["inputs", "outputs"] as const)
    .filter((place) => requests[place] !== "" && needed[place] && requests.pilot[place].length === 0)
    .map((place) => {
      const message = `is required: this platform's co-pilot needs the names and types of ${place}, as model=blob`;
      return { path: annotationPath(annotations[place]), message };
    });
}

function shapeSpec(
  raw: JsonObject,
  requests: AnnotationRequests,
  found: PlatformTemplate | null,
  { config, namespace, interruptible, primaryContainer }: Shaping,
): JsonObject {
  const own = config.namespaces[namespace];
  const platform = own?.resources ?? config.resources;
  const customize = (podSpec: JsonObject) =>
    mapContainers(podSpec, (container, list) => {
      const mode = list === "containers" && stringAt(container, "name") === primaryContainer ? "assign" : "hold";
      return withResources(container, platform, { mode, config });
    });
  const customized = mapContainers(customize(raw), (container) => withPlatformEnv(container, config));
  const piloted = withPilot(customized, raw, { requests, config, primaryContainer });
  const serviceAccount = own?.serviceAccount ?? config.serviceAccount;
  const updated = updatePod(piloted, { interruptible, serviceAccount, resources: resourcesOf(piloted), config });
  // The replica spec has the restart policy. A policy of the template is kept only for a warning.
  const secured = withSecurityContext({ ...updated, restartPolicy: raw["restartPolicy"] }, config, primaryContainer);
  const primary = { container: primaryContainer, initContainer: requests.inputs === "" ? "" : DOWNLOADER };
  const base = mapContainers(objectAt(found?.template, "spec"), (container) =>
    withResources(container, platform, { mode: "hold", config }),
  );
  const pulled = withPullPolicy(found === null ? secured : mergePodSpecs(base, secured, primary), config);
  const isPiloted = piloted !== customized;
  const merged = customize(isPiloted ? mapContainers(pulled, withoutStorage) : pulled);
  // Also adds tolerations for resources that come from the base.
  const tolerations = platformTolerations(interruptible, resourcesOf(merged), config);
  // The init containers of the base have no variables yet.
  const complete = mapContainers(merged, (one, list) =>
    list === "initContainers" ? withPlatformEnv(one, config) : one,
  );
  const tolerant = { ...complete, ...withTolerations(complete, tolerations, "last") };
  const { restartPolicy, ...rest } = withSecrets(selectGpus(tolerant, requests.accelerator, config), requests.secrets);
  return restartPolicy === undefined ? rest : { ...rest, restartPolicy };
}

/** `raw`: the template's own spec, whose primary container says how much room inputs and outputs need. */
function withPilot(
  podSpec: JsonObject,
  raw: JsonObject,
  of: { readonly requests: AnnotationRequests; readonly config: PodConfig; readonly primaryContainer: string },
): JsonObject {
  const { requests, primaryContainer } = of;
  const { coPilot } = of.config;
  if (coPilot === undefined || (requests.inputs === "" && requests.outputs === "")) return podSpec;
  const primary = arrayAt(raw, "containers").find((one) => stringAt(one, "name") === primaryContainer);
  const storage = isJsonObject(primary) ? storageOf(primary) : "";
  return withCoPilot(podSpec, requests, { config: coPilot, primaryContainer, storage });
}

/** Containers that name a policy of their own keep it. */
function withPullPolicy(podSpec: JsonObject, { imagePullPolicy }: PodConfig): JsonObject {
  if (imagePullPolicy === undefined) return podSpec;
  return mapContainers(podSpec, (one) => (stringAt(one, "imagePullPolicy") ? one : { ...one, imagePullPolicy }));
}

function withResources(
  container: JsonObject,
  platform: PlatformResources | undefined,
  of: Parameters<typeof customizeResources>[2],
): JsonObject {
  if (platform === undefined) return container;
  const { resources: given, ...others } = container;
  const resources = customizeResources(isJsonObject(given) ? given : {}, platform, of);
  return Object.keys(resources).length === 0 ? others : { ...container, resources };
}

/** Adds the platform's environment to a container. Variables that the container sets itself stay. */
function withPlatformEnv(container: JsonObject, config: PodConfig): JsonObject {
  const defaults = Object.entries(config.defaultEnvVars)
    .sort(([a], [b]) => compareText(a, b))
    .map(([name, value]) => ({ name, value }));
  const env = missingEnv(container, defaults);
  const sources = [
    ...config.defaultEnvFromSecrets.map((name) => ({ secretRef: { name, optional: true } })),
    ...config.defaultEnvFromConfigMaps.map((name) => ({ configMapRef: { name, optional: true } })),
  ];
  const own = new Set(arrayAt(container, "envFrom").map((one) => JSON.stringify(one)));
  const envFrom = sources.filter((one) => !own.has(JSON.stringify(one)));
  return {
    ...container,
    ...(env.length === 0 ? {} : { env: [...arrayAt(container, "env"), ...env] }),
    ...(envFrom.length === 0 ? {} : { envFrom: [...arrayAt(container, "envFrom"), ...envFrom] }),
  };
}

function withSecurityContext(podSpec: JsonObject, config: PodConfig, primaryContainer: string): JsonObject {
  const securityContext = config.defaultSecurityContext;
  if (securityContext === undefined) return podSpec;
  return mapContainers(podSpec, (container, list) => {
    const isPrimary = list === "containers" && stringAt(container, "name") === primaryContainer;
    return isPrimary && !isJsonObject(container["securityContext"]) ? { ...container, securityContext } : container;
  });
}
