import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/sent.ts";
import { DOWNLOADER, withCoPilot } from "./co-pilot.ts";
import { selectGpus, withTolerations } from "./gpu-selectors.ts";
import { mergeMetadata, mergePodSpecs } from "./merge-pod-specs.ts";
import { customizeResources } from "./platform-resources.ts";
import { type Asked, annotationPath, POD_ANNOTATION, readAsked } from "./pod-annotations.ts";
import type { PlatformResources, PlatformTemplate, PodConfig } from "./pod-config.ts";
import { PRIMARY_CONTAINER_ANNOTATION } from "./pod-view.ts";
import { withSecrets } from "./secrets.ts";
import { platformTolerations, resourcesOf, updatePod } from "./update-pod.ts";
import { checkContainers } from "./validate-containers.ts";
import { checkResourceNames } from "./validate-resource-names.ts";
import { checkVolumes } from "./validate-volumes.ts";
import { missingEnv } from "./variables.ts";
import { mapContainers } from "./with-named.ts";

/** Whose template it is, and what it is shaped by. */
export type Shaping = {
  readonly config: PodConfig;
  readonly namespace: string;
  readonly interruptible: boolean;
  /** The container whose end is the pod's, where the template's annotation names none. */
  readonly primaryContainer: string;
};

export type ShapeOutcome =
  | { readonly kind: "shaped"; readonly template: JsonObject }
  /** What its annotations ask for and is not there, or what Kubernetes would refuse of the whole; paths from the template. */
  | { readonly kind: "refused"; readonly errors: readonly FieldError[] };

/**
 * A template as its platform gives it to the cluster, in this order: resources and environment of its containers, co-pilots, the platform's
 * defaults, the pod template that it is built on, GPUs, secrets. It is done when a job is made, so that whoever places the job sees what
 * will run; what is only known of a single pod, `buildPod` adds. Deterministic, and doing it twice is as doing it once.
 */
export function shapeTemplate(template: JsonObject, shaping: Shaping): ShapeOutcome {
  const errors = checkAsked(template, shaping);
  if (errors.length > 0) return { kind: "refused", errors };
  const asked = readAsked(template);
  const found = findTemplate(asked, shaping);
  const metadata = metadataOn(found, template);
  const podSpec = objectAt(template, "spec");
  const primaryContainer = primaryNamedBy(metadata) || shaping.primaryContainer;
  const shaped = shapeSpec(podSpec, asked, found, { ...shaping, primaryContainer });
  const wrong = wrongWith(podSpec, shaped);
  if (wrong.length > 0) return { kind: "refused", errors: wrong };
  const described = Object.keys(metadata).length === 0 ? {} : { metadata };
  return { kind: "shaped", template: { ...template, ...described, spec: shaped } };
}

/** What a template's annotations ask for and is not there; of its spec only the names of containers are looked at. */
export function checkAsked(
  template: JsonObject,
  shaping: Pick<Shaping, "config" | "namespace">,
): readonly FieldError[] {
  const asked = readAsked(template);
  const found = findTemplate(asked, shaping);
  const primary = primaryNamedBy(metadataOn(found, template));
  return [
    ...asked.errors,
    ...missing(asked, found, shaping.config),
    ...noSuchContainer(primary, objectAt(template, "spec")),
  ];
}

function metadataOn(base: PlatformTemplate | null, template: JsonObject): JsonObject {
  return mergeMetadata(objectAt(base?.template, "metadata"), objectAt(template, "metadata"));
}

function primaryNamedBy(metadata: JsonObject): string {
  return stringMapAt(metadata, "annotations")[PRIMARY_CONTAINER_ANNOTATION] ?? "";
}

/** Nobody would ever see such a container end. */
function noSuchContainer(name: string, podSpec: JsonObject): readonly FieldError[] {
  const names = arrayAt(podSpec, "containers").map((container) => stringAt(container, "name") ?? "");
  if (name === "" || names.includes(name)) return [];
  const message = `names ${name.slice(0, 80)}, which is none of the template's containers: ${names.join(", ")}`;
  return [{ path: annotationPath(PRIMARY_CONTAINER_ANNOTATION), message }];
}

/** What Kubernetes would refuse of the whole; it is said where that is not the template's own. */
function wrongWith(raw: JsonObject, shaped: JsonObject): readonly FieldError[] {
  const own = new Set([...checkContainers(raw), ...checkVolumes(raw)].map(({ path, message }) => `${path} ${message}`));
  const whole = [...checkContainers(shaped), ...checkVolumes(shaped)].map(({ path, message }) => {
    const built = own.has(`${path} ${message}`) ? "" : " (as the platform builds the pod)";
    return { path, message: `${message}${built}` };
  });
  return [...whole, ...checkResourceNames(shaped)];
}

/** The template of that name in a namespace, else in the platform's own. Source: Flyte's `PodTemplateStore.LoadOrDefault`. */
export function loadOrDefault(
  { podTemplates, podTemplateNamespace }: Pick<PodConfig, "podTemplates" | "podTemplateNamespace">,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): PlatformTemplate | null {
  const named = podTemplates.filter((one) => one.name === name);
  const own = named.find((one) => one.namespace === namespace);
  return own ?? named.find((one) => one.namespace === podTemplateNamespace) ?? null;
}

function findTemplate(
  { podTemplate }: Asked,
  { config, namespace }: Pick<Shaping, "config" | "namespace">,
): PlatformTemplate | null {
  const name = podTemplate || config.defaultPodTemplateName;
  return name === "" ? null : loadOrDefault(config, { namespace, name });
}

function missing(asked: Asked, found: PlatformTemplate | null, config: PodConfig): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (asked.podTemplate !== "" && found === null) {
    const message = `there is no pod template ${asked.podTemplate.slice(0, 80)}`;
    errors.push({ path: annotationPath(POD_ANNOTATION.podTemplate), message });
  }
  for (const what of ["inputs", "outputs"] as const) {
    if (asked[what] === "" || config.coPilot !== undefined) continue;
    errors.push({
      path: annotationPath(POD_ANNOTATION[what]),
      message: "this platform has no co-pilot that would copy it",
    });
  }
  return errors;
}

function shapeSpec(
  raw: JsonObject,
  asked: Asked,
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
  const piloted =
    config.coPilot === undefined
      ? customized
      : withCoPilot(customized, asked, { config: config.coPilot, primaryContainer });
  const serviceAccount = own?.serviceAccount ?? config.serviceAccount;
  const updated = updatePod(piloted, { interruptible, serviceAccount, resources: resourcesOf(piloted), config });
  // The replica spec says which policy it is; one that the template names is only kept to be warned of.
  const secured = withSecurityContext({ ...updated, restartPolicy: raw["restartPolicy"] }, config, primaryContainer);
  const primary = { container: primaryContainer, initContainer: asked.inputs === "" ? "" : DOWNLOADER };
  const base = mapContainers(objectAt(found?.template, "spec"), (container) =>
    withResources(container, platform, { mode: "hold", config }),
  );
  const merged = customize(found === null ? secured : mergePodSpecs(base, secured, primary));
  // What containers only ask for because of the base is tolerated too.
  const tolerations = platformTolerations(interruptible, resourcesOf(merged), config);
  // The init containers of the base have not been told anything yet.
  const told = mapContainers(merged, (one, list) => (list === "initContainers" ? withPlatformEnv(one, config) : one));
  const tolerant = { ...told, ...withTolerations(told, tolerations, "last") };
  const { restartPolicy, ...complete } = withSecrets(selectGpus(tolerant, asked.accelerator, config), asked.secrets);
  return restartPolicy === undefined ? complete : { ...complete, restartPolicy };
}

function withResources(
  container: JsonObject,
  platform: PlatformResources | undefined,
  of: Parameters<typeof customizeResources>[2],
): JsonObject {
  if (platform === undefined) return container;
  const resources = customizeResources(objectAt(container, "resources"), platform, of);
  return Object.keys(resources).length === 0 ? container : { ...container, resources };
}

/** What a container sets itself stays. */
function withPlatformEnv(container: JsonObject, config: PodConfig): JsonObject {
  const defaults = Object.entries(config.defaultEnvVars)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => ({ name, value }));
  const env = missingEnv(container, defaults);
  const sources = [
    ...config.defaultEnvFromSecrets.map((name) => ({ secretRef: { name, optional: true } })),
    ...config.defaultEnvFromConfigMaps.map((name) => ({ configMapRef: { name, optional: true } })),
  ];
  const there = new Set(arrayAt(container, "envFrom").map((one) => JSON.stringify(one)));
  const envFrom = sources.filter((one) => !there.has(JSON.stringify(one)));
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
