/** The control plane of the tests as one binary. As a program, this file builds it and prints its path. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildGo, GO_CACHE, type GoProgram, goBinary } from "../support/go-program.ts";

/** The API servers' answer to `GET /version`. The modules of go.mod are of this release. */
export const KUBERNETES_VERSION = "v1.36.3";

const CONTROL_PLANE: GoProgram = {
  name: "control-plane",
  sources: join(import.meta.dirname, "control-plane"),
  package: ".",
  cache: process.env["GANGWAY_KUBE_CACHE"] || join(GO_CACHE, "kube"),
  release: KUBERNETES_VERSION,
  linkerFlags: `-X k8s.io/component-base/version.gitVersion=${KUBERNETES_VERSION}`,
};

/** The path of the binary of these sources, even before it is built. */
export function controlPlaneBinary(): string {
  return goBinary(CONTROL_PLANE);
}

/** True if suites that need a real control plane can run here. */
export function controlPlaneBuilt(): boolean {
  return existsSync(controlPlaneBinary());
}

if (import.meta.main) console.log(buildGo(CONTROL_PLANE));
