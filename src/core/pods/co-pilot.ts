import { type JsonObject, numberAt, stringAt } from "../../runtime/json.ts";
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

/** The places of a pod's inputs and outputs in the storage. Empty: none. */
type PodData = { readonly inputs: string; readonly outputs: string };

/**
 * Adds an init container that downloads the inputs, and a sidecar that uploads the outputs after the program has ended.
 * The primary container finds both in folders. The end of the pod waits for the sidecar, at most for its time limit.
 * After Flyte's `AddCoPilotToPod`.
 */
export function withCoPilot(
  podSpec: JsonObject,
  { inputs, outputs }: PodData,
  of: { readonly config: CoPilotConfig; readonly primaryContainer: string },
): JsonObject {
  const { config, primaryContainer } = of;
  const copy = (from: string, to: string) =>
    config.command.map((one) => render(one, { variables: { From: from, To: to } }));
  const shared: { readonly volume: string; readonly path: string; readonly container: JsonObject }[] = [];
  if (outputs !== "") {
    const command = ["sh", "-c", UPLOAD_AT_THE_END, UPLOADER, ...copy(config.outputPath, outputs)];
    const container = { ...pilot(config, UPLOADER, command), restartPolicy: "Always" };
    shared.push({ volume: OUTPUTS, path: config.outputPath, container });
  }
  if (inputs !== "") {
    const container = pilot(config, DOWNLOADER, copy(inputs, config.inputPath));
    shared.push({ volume: INPUTS, path: config.inputPath, container });
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
  const volumes = shared.map(({ volume }) => ({ name: volume, emptyDir: {} }));
  return {
    ...mounted,
    ...withNamed(podSpec, "initContainers", pilots),
    ...withNamed(podSpec, "volumes", volumes),
    ...(outputs === "" ? {} : { terminationGracePeriodSeconds: Math.max(grace, config.timeoutSeconds) }),
  };
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
