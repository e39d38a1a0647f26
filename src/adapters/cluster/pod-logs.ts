import {
  type ContainerForLog,
  FOLLOWED_LOGS_MAX,
  type LogFailure,
  type LogRequest,
  type LogTarget,
  type OpenLog,
  type PodForLog,
} from "../../core/job/container-log.ts";
import { LABEL } from "../../core/job/labels.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import { createKubeClient, type KubeClient } from "./client.ts";
import type { KubeClientOptions } from "./connection-pool.ts";
import { ownJobUid } from "./kept-objects.ts";
import { unreachable } from "./kube-failure.ts";
import { logLines } from "./log-lines.ts";

export type PodLogs = {
  readonly look: (target: LogTarget, signal: AbortSignal) => Promise<PodForLog | { kind: "absent" } | LogFailure>;
  readonly open: (request: LogRequest, signal: AbortSignal) => Promise<OpenLog | LogFailure>;
  readonly close: () => Promise<void>;
};

/**
 * A followed log keeps its connection until it ends, so that followers have connections of their own. All others end
 * soon: one that finds no free connection waits for the next.
 */
const CONNECTIONS_MAX = { followed: FOLLOWED_LOGS_MAX, readOnce: 64 };

/**
 * Reads logs of one cluster over connections of their own, so that no watch or write waits behind a log, and that no
 * log which is read once waits behind those that are followed. Connects with the first call.
 */
export function createPodLogs(options: Omit<KubeClientOptions, "connectionsMax">, installation: string): PodLogs {
  const clients: { followed?: KubeClient; readOnce?: KubeClient } = {};
  const clientFor = ({ follow }: Pick<LogTarget, "follow">) => {
    const use = follow ? "followed" : "readOnce";
    clients[use] ??= createKubeClient({ ...options, connectionsMax: CONNECTIONS_MAX[use] });
    return clients[use];
  };
  return {
    async look(target, signal) {
      const got = await clientFor(target).request({ method: "GET", path: pathOf(target) }, signal);
      if (got.kind === "failed") return got.status === 404 ? { kind: "absent" } : got;
      return isOf(target, got.object, installation) ? podForLog(got.object) : { kind: "absent" };
    },
    async open(request, signal) {
      const { container, follow, previous, tailLines, sinceTime } = request;
      const query = {
        container,
        timestamps: "true",
        ...(follow ? { follow: "true" } : {}),
        ...(previous ? { previous: "true" } : {}),
        ...(tailLines === null ? {} : { tailLines: String(tailLines) }),
        ...(sinceTime === null ? {} : { sinceTime }),
      };
      try {
        const opened = await clientFor(request).stream({ path: `${pathOf(request)}/log`, query }, signal);
        return opened.kind === "open" ? { kind: "open", lines: logLines(opened.bytes) } : opened;
      } catch (error) {
        return unreachable(error);
      }
    },
    async close() {
      await Promise.all([clients.followed?.close(), clients.readOnce?.close()]);
    },
  };
}

function pathOf({ namespace, pod }: LogTarget): string {
  return `/api/v1/namespaces/${namespace}/pods/${pod}`;
}

function isOf({ jobUid, admission }: LogTarget, pod: JsonObject, installation: string): boolean {
  const labels = stringMapAt(objectAt(pod, "metadata"), "labels");
  return ownJobUid(pod, installation) === jobUid && labels[LABEL.admission] === String(admission);
}

function podForLog(pod: JsonObject): PodForLog {
  const uid = stringAt(objectAt(pod, "metadata"), "uid") ?? "";
  const lists = [
    ["containers", "containerStatuses"],
    ["initContainers", "initContainerStatuses"],
  ] as const;
  const containers = lists.flatMap(([specs, statuses]) =>
    arrayAt(objectAt(pod, "spec"), specs).map((spec) => {
      const name = stringAt(spec, "name") ?? "";
      const status = arrayAt(objectAt(pod, "status"), statuses).find((one) => stringAt(one, "name") === name);
      return containerForLog({ name, uid, status });
    }),
  );
  return { kind: "found", containers };
}

/** A container that waits to be restarted has ended its last run, whose log is there until the next begins. */
function containerForLog(of: {
  readonly name: string;
  readonly uid: string;
  readonly status: unknown;
}): ContainerForLog {
  const { name, uid, status } = of;
  const state = objectAt(status, "state");
  const ended = [state["terminated"], objectAt(status, "lastState")["terminated"]].find(isJsonObject);
  const restarts = numberAt(status, "restartCount") ?? 0;
  const run = (id: string | undefined) => `${uid}/${id ?? restarts}`;
  if (state["running"] !== undefined) {
    return { name, run: run(stringAt(status, "containerID")), state: "running", reason: "" };
  }
  if (ended !== undefined) return { name, run: run(stringAt(ended, "containerID")), state: "ended", reason: "" };
  return { name, run: "", state: "waiting", reason: stringAt(state["waiting"], "reason") ?? "Pending" };
}
