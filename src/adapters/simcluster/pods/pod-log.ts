import { LABEL } from "../../../core/job/labels.ts";
import { arrayAt, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";
import type { ContainerRun, KubeObject, StoredObject } from "../objects/kube-object.ts";
import { badRequest } from "../objects/status-error.ts";
import { readPodScript } from "./pod-script.ts";
import { statusOf } from "./pod-status.ts";

/** Older lines are dropped, as a kubelet rotates log files. */
const LINES_KEPT_MAX = 20_000;

/** One line of a container's log. */
export type SimLogLine = { readonly atMs: number; readonly text: string };

/**
 * The log of one run of a container: a line at its start, one for each interval, and one at its end, numbered from 0.
 * Nothing is stored: the lines follow from the times of the run.
 */
export class SimLog {
  readonly #run: ContainerRun;
  readonly #everyMs: number | null;
  readonly #container: string;
  readonly #title: string;
  readonly #node: string;

  constructor({ object: pod }: Pick<StoredObject, "object">, container: string, run: ContainerRun) {
    this.#run = run;
    this.#container = container;
    this.#everyMs = readPodScript(pod.metadata.annotations ?? {}).logEveryMs;
    const attempt = pod.metadata.labels?.[LABEL.attempt];
    this.#title = `${pod.metadata.name}/${container}${attempt === undefined ? "" : ` attempt ${attempt}`}`;
    this.#node = stringAt(pod.spec, "nodeName") ?? "";
  }

  get ended(): boolean {
    return this.#run.endedMs !== null;
  }

  /** Returns the log of the same run, from the pod's present state. */
  refreshed(entry: StoredObject): SimLog {
    const run = entry.run?.runs?.find(({ startedMs }) => startedMs === this.#run.startedMs);
    return run === undefined ? this : new SimLog(entry, this.#container, run);
  }

  /** The number of the first line that is not dropped, and of the line after the last one that is written by then. */
  range(nowMs: number): { readonly from: number; readonly to: number } {
    const { endedMs } = this.#run;
    const to = 1 + this.#steps(endedMs ?? nowMs + 1) + (endedMs === null || endedMs > nowMs ? 0 : 1);
    return { from: Math.max(0, to - LINES_KEPT_MAX), to };
  }

  line(number: number): SimLogLine {
    const { startedMs, endedMs, exitCode } = this.#run;
    if (number === 0) return { atMs: startedMs, text: `${this.#title} started on ${this.#node}` };
    if (endedMs !== null && number === this.range(endedMs).to - 1) {
      return { atMs: endedMs, text: `${this.#title} ended with exit code ${exitCode}` };
    }
    return { atMs: startedMs + number * (this.#everyMs ?? 0), text: `step ${number}` };
  }

  /** When the next line is written. Null: not before the run ends. */
  nextMs(nowMs: number): number | null {
    if (this.ended || this.#everyMs === null) return null;
    return this.#run.startedMs + (this.#steps(nowMs + 1) + 1) * this.#everyMs;
  }

  /** How many intervals have passed before this time. */
  #steps(beforeMs: number): number {
    if (this.#everyMs === null) return 0;
    return Math.max(0, Math.ceil((beforeMs - this.#run.startedMs) / this.#everyMs) - 1);
  }
}

/**
 * Finds the log of a container. Null: the pod has no node yet. Throws the error that kube-apiserver or a kubelet would
 * return.
 */
export function podLog(
  entry: StoredObject,
  requested: { readonly container: string; readonly previous: boolean },
): SimLog | null {
  const { object: pod, run } = entry;
  const container = containerOf(pod, requested.container);
  if (stringAt(pod.spec, "nodeName") === undefined) return null;
  const { name } = pod.metadata;
  const isInit = arrayAt(pod.spec, "initContainers").some((init) => stringAt(init, "name") === container);
  const runs = isInit ? [] : (run?.runs ?? []);
  // While a container waits to be restarted, its last run is the previous one, as a kubelet reports it.
  const chosen = requested.previous && run?.stage !== "backingOff" ? runs.at(-2) : runs.at(-1);
  if (chosen !== undefined) return new SimLog(entry, container, chosen);
  if (requested.previous) throw badRequest(`previous terminated container "${container}" in pod "${name}" not found`);
  const exitCode = isInit ? initExitCode(pod, container) : null;
  if (exitCode !== null) {
    const startedMs = Date.parse(pod.metadata.creationTimestamp);
    return new SimLog(entry, container, { startedMs, endedMs: startedMs, exitCode });
  }
  const waiting = statusOf(arrayAt(pod.status, "containerStatuses"), { name: container });
  const reason = stringAt(objectAt(waiting, "state")["waiting"], "reason") ?? "ContainerCreating";
  throw badRequest(`container "${container}" in pod "${name}" is waiting to start: ${reason}`);
}

/** The exit code of an init container. Null: it has not ended. */
function initExitCode(pod: KubeObject, container: string): number | null {
  const status = statusOf(arrayAt(pod.status, "initContainerStatuses"), { name: container });
  const { terminated } = objectAt(status, "state");
  return terminated === undefined ? null : (numberAt(terminated, "exitCode") ?? 0);
}

/** Source of the wording: `validateContainer` and `LogLocation` in Kubernetes' pod strategy. */
function containerOf(pod: KubeObject, requested: string): string {
  const namesOf = (list: string) => arrayAt(pod.spec, list).map((container) => stringAt(container, "name") ?? "");
  const containers = namesOf("containers");
  const initContainers = namesOf("initContainers");
  const { name } = pod.metadata;
  const [only = ""] = containers;
  if (requested === "" && containers.length === 1) return only;
  if (requested === "") {
    const init = initContainers.length === 0 ? "" : ` or one of the init containers: [${initContainers.join(" ")}]`;
    throw badRequest(
      `a container name must be specified for pod ${name}, choose one of: [${containers.join(" ")}]${init}`,
    );
  }
  if (![...containers, ...initContainers].includes(requested)) {
    throw badRequest(`container ${requested} is not valid for pod ${name}`);
  }
  return requested;
}
