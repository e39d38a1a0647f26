/**
 * `npm run kube:start -- FILE`: starts the control plane of the tests with two nodes of eight H100 GPUs each, writes an
 * administrator's kubeconfig to FILE, and runs until it is interrupted. No container runs: KWOK ends the pods of
 * Gangway's jobs after a second or two.
 */
import { writeFileSync } from "node:fs";
import { controlPlaneBuilt } from "./build.ts";
import { startControlPlane } from "./control-plane.ts";
import { TRAINING_STAGES } from "./stages.ts";
import { addNodes } from "./subject.ts";

const NODES = 2;

function fail(message: string): never {
  console.error(`error: ${message}`);
  process.exit(2);
}

const [file, ...more] = process.argv.slice(2);
if (file === undefined || more.length > 0) fail("give the kubeconfig's file: npm run kube:start -- admin.yaml");
if (!controlPlaneBuilt()) fail("the control plane is not built: run npm run kube:build, which needs Go");

const interrupted = new Promise<void>((resolve) => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
});
const plane = await startControlPlane({ stages: TRAINING_STAGES });
const labels = { "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3" };
const allocatable = { cpu: "96", memory: "768Gi", pods: "110", "nvidia.com/gpu": "8" };
await addNodes(
  plane,
  Array.from({ length: NODES }, (_, at) => ({ name: `h100-${at}`, labels, allocatable })),
);
writeFileSync(file, plane.kubeconfig(), { mode: 0o600 });
console.log(`serving ${plane.url}; its kubeconfig is ${file}; Ctrl-C stops it`);
await interrupted;
await plane.stop();
