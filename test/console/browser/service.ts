/** `gangway up` with its console, for tests in a browser. */
import { rmSync } from "node:fs";
import { newDataFolder } from "../../support/data-folder.ts";
import { MainProcess } from "../../support/main-process.ts";

export type ConsoleService = AsyncDisposable & {
  readonly url: string;
  /** Calls an RPC, such as `JobService/GetJob`, with a request in JSON. Throws what it answers if it fails. */
  readonly call: (rpc: string, request: unknown) => Promise<unknown>;
};

/** `args`: more words for `gangway up`, such as `--no-examples`. */
export async function startConsoleService(...args: readonly string[]): Promise<ConsoleService> {
  const data = newDataFolder("gangway-console-");
  const service = new MainProcess(["up", "--listen", "127.0.0.1:0", "--data", data, ...args], {
    GANGWAY_CONSOLE_LISTEN: "127.0.0.1:0",
  });
  const stop = async () => {
    await service.end("SIGTERM");
    rmSync(data, { recursive: true, force: true });
  };
  try {
    await service.printed("· console http");
  } catch (error) {
    await stop();
    throw error;
  }
  const url = /· console (\S+)/.exec(service.output)?.[1] ?? "";
  return { url, call: (rpc, request) => callRpc(url, rpc, request), [Symbol.asyncDispose]: stop };
}

async function callRpc(url: string, rpc: string, request: unknown): Promise<unknown> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${url}/gangway.v1.${rpc}`, { method: "POST", headers, body: JSON.stringify(request) });
  if (!answer.ok) throw new Error(`${rpc}: ${await answer.text()}`);
  return await answer.json();
}

/** A request for a job of pods with GPUs, which run for so long on simulated clusters. */
export function jobRequest(name: string, { pods = 1, gpus = 8, runs = "30m", queue = "default" } = {}) {
  const limits = { cpu: 4, memory: "8Gi", "nvidia.com/gpu": gpus };
  return {
    job: { metadata: { namespace: "default" } },
    manifest: {
      apiVersion: "kubeflow.org/v1",
      kind: "PyTorchJob",
      metadata: { name, labels: { "kueue.x-k8s.io/queue-name": queue } },
      spec: {
        pytorchReplicaSpecs: {
          Worker: {
            replicas: pods,
            restartPolicy: "OnFailure",
            template: {
              metadata: { annotations: { "sim.gangway.dev/run": runs } },
              spec: { containers: [{ name: "pytorch", image: "registry.example/nlp/gpt:2", resources: { limits } }] },
            },
          },
        },
      },
    },
  };
}
