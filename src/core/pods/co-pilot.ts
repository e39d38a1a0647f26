import { arrayAt, type JsonObject, numberAt, objectAt, stringAt } from "../../runtime/json.ts";
import { PILOT_PLACEHOLDERS } from "./flyte/flyte-co-pilot.ts";
import { typedInterface, variableMap } from "./flyte/task-interface.ts";
import { placeholdersIn } from "./placeholders.ts";
import type { PilotRequests } from "./pod-annotations.ts";
import type { CoPilotConfig } from "./pod-config.ts";
import { render } from "./variables.ts";
import { mapContainers, withNamed } from "./with-named.ts";

const INPUTS = "gangway-inputs";
const OUTPUTS = "gangway-outputs";
export const DOWNLOADER = "gangway-downloader";
export const UPLOADER = "gangway-uploader";

/**
 * Waits for the kubelet's signal, which comes after the program of the pod has ended, then runs the arguments. Sleeps
 * in the background, because a shell handles signals only between commands. Sleeps briefly, because a signal just
 * before the sleep is handled after it.
 */
const UPLOAD_AT_THE_END = `ended=; trap 'ended=1' TERM
while [ -z "$ended" ]; do sleep 1 & wait $!; done
kill $! 2>/dev/null
exec "$@"`;

/** The places of a pod's inputs and outputs in the storage, empty for none, and what its template says about both. */
type PodData = { readonly inputs: string; readonly outputs: string; readonly pilot: PilotRequests };

/** Which interfaces the commands of a co-pilot name, so that a template must have them. */
export function interfacesOf({ command, uploadCommand = command }: CoPilotConfig) {
  const names = (texts: readonly string[]) =>
    new Set(texts.flatMap((text) => [...placeholdersIn(text)].map(({ name }) => name)));
  const { inputInterface, outputInterface } = PILOT_PLACEHOLDERS;
  return { inputs: names(command).has(inputInterface), outputs: names(uploadCommand).has(outputInterface) };
}

/**
 * Adds an init container that downloads the inputs, and a sidecar that uploads the outputs after the program has ended.
 * The primary container finds both in folders. The end of the pod waits for the sidecar, at most for its time limit.
 * After Flyte's `AddCoPilotToPod`.
 */
export function withCoPilot(
  podSpec: JsonObject,
  data: PodData,
  of: { readonly config: CoPilotConfig; readonly primaryContainer: string; readonly storage: string },
): JsonObject {
  const { inputs, outputs } = data;
  const { config, primaryContainer } = of;
  const inputPath = data.pilot.inputPath || config.inputPath;
  const outputPath = data.pilot.outputPath || config.outputPath;
  const facts = factsOf(data, config);
  const copy = (command: readonly string[], from: string, to: string) =>
    command.map((one) => render(one, { variables: { ...facts, From: from, To: to } }));
  const shared: { readonly volume: string; readonly path: string; readonly container: JsonObject }[] = [];
  if (outputs !== "") {
    const command =
      config.uploadCommand === undefined
        ? ["sh", "-c", UPLOAD_AT_THE_END, UPLOADER, ...copy(config.command, outputPath, outputs)]
        : copy(config.uploadCommand, outputPath, outputs);
    const container = { ...pilot(config, UPLOADER, command), restartPolicy: "Always" };
    shared.push({ volume: OUTPUTS, path: outputPath, container });
  }
  if (inputs !== "") {
    const container = pilot(config, DOWNLOADER, copy(config.command, inputs, inputPath));
    shared.push({ volume: INPUTS, path: inputPath, container });
  }
  if (shared.length === 0) return podSpec;
  const mounts = shared.map(({ volume, path }) => ({ name: volume, mountPath: path }));
  const pilots = shared.map(({ volume, path, container }) => ({
    ...container,
    volumeMounts: [{ name: volume, mountPath: path }],
  }));
  const mounted = mapContainers(podSpec, (container, list) => {
    const isPrimary = list === "containers" && stringAt(container, "name") === primaryContainer;
    return isPrimary ? { ...container, ...withNamed(container, "volumeMounts", mounts, "mountPath") } : container;
  });
  const grace = numberAt(podSpec, "terminationGracePeriodSeconds") ?? 0;
  const volumes = shared.map(({ volume }) => dataVolume(podSpec, volume, of.storage || config.storage || ""));
  return {
    ...mounted,
    ...withNamed(podSpec, "initContainers", pilots),
    ...withNamed(podSpec, "volumes", volumes),
    ...(outputs === "" ? {} : { terminationGracePeriodSeconds: Math.max(grace, config.timeoutSeconds) }),
  };
}

/** The values of a co-pilot's placeholders beside the two places. Pods fill in that of raw outputs. */
function factsOf(
  { inputs, outputs, pilot: requests }: PodData,
  config: CoPilotConfig,
): Readonly<Record<string, string>> {
  const { format, inputInterface, outputInterface, outputs: places, rawOutputs, timeout } = PILOT_PLACEHOLDERS;
  return {
    [format]: requests.format || "JSON",
    [inputInterface]: variableMap(requests.inputs),
    [outputInterface]: typedInterface(requests),
    [places]: outputs || inputs,
    [rawOutputs]: "{{ .RawOutputDataPrefix }}",
    [timeout]: `${config.timeoutSeconds}s`,
  };
}

/**
 * The volume of inputs or outputs. One that the template has keeps its size limit. Source: Flyte's `DataVolume` and
 * `CalculateStorageSize`.
 */
function dataVolume(podSpec: JsonObject, name: string, size: string): JsonObject {
  const own = arrayAt(podSpec, "volumes").find((one) => stringAt(one, "name") === name);
  const sizeLimit = stringAt(objectAt(own, "emptyDir"), "sizeLimit") || size;
  return { name, emptyDir: sizeLimit === "" ? {} : { sizeLimit } };
}

/** The storage that a container asks for. Kubernetes knows it of volumes alone. Empty: none. */
export function storageOf(container: JsonObject): string {
  const resources = objectAt(container, "resources");
  const amount = objectAt(resources, "limits")["storage"] ?? objectAt(resources, "requests")["storage"] ?? "";
  return String(amount);
}

/** A container without the storage that it asks for, which its volumes have. */
export function withoutStorage(container: JsonObject): JsonObject {
  if (storageOf(container) === "") return container;
  const { limits, requests, ...others } = objectAt(container, "resources");
  const kept = Object.entries({ limits, requests }).flatMap(([list, amounts]) => {
    const { storage: _storage, ...rest } = objectAt({ amounts }, "amounts");
    return Object.keys(rest).length === 0 ? [] : [[list, rest] as const];
  });
  const resources = { ...others, ...Object.fromEntries(kept) };
  const { resources: _resources, ...bare } = container;
  return Object.keys(resources).length === 0 ? bare : { ...bare, resources };
}

function pilot(config: CoPilotConfig, name: string, command: readonly string[]): JsonObject {
  const amounts = { cpu: config.cpu, memory: config.memory };
  return {
    name,
    image: config.image,
    command,
    workingDir: "/",
    ...(config.env.length === 0 ? {} : { env: config.env }),
    ...(config.envFrom.length === 0 ? {} : { envFrom: config.envFrom }),
    resources: { requests: amounts, limits: amounts },
    terminationMessagePolicy: "FallbackToLogsOnError",
    imagePullPolicy: "IfNotPresent",
  };
}
