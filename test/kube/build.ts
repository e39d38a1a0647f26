/**
 * The control plane of the tests as one binary, in a cache folder that is keyed by its sources. As a program, this file
 * builds the binary if it does not exist (which takes minutes) and prints its path.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** The API servers' answer to `GET /version`. The modules of go.mod are of this release. */
export const KUBERNETES_VERSION = "v1.36.3";
const SOURCES = join(import.meta.dirname, "control-plane");

/** The path of the binary of these sources, even before it is built. */
export function controlPlaneBinary(): string {
  const cache = process.env["GANGWAY_KUBE_CACHE"] || join(homedir(), ".cache", "gangway", "kube");
  const hash = createHash("sha256").update(`${KUBERNETES_VERSION} ${process.platform} ${process.arch}\0`);
  for (const name of readdirSync(SOURCES).sort()) {
    hash
      .update(`${name}\0`)
      .update(readFileSync(join(SOURCES, name)))
      .update("\0");
  }
  return join(cache, hash.digest("hex").slice(0, 16), "control-plane");
}

/** True if suites that need a real control plane can run here. */
export function controlPlaneBuilt(): boolean {
  return existsSync(controlPlaneBinary());
}

/** Builds the binary if it does not exist. Throws if Go fails. */
function build(): string {
  const binary = controlPlaneBinary();
  if (existsSync(binary)) return binary;
  mkdirSync(join(binary, ".."), { recursive: true });
  // The binary has its own name until it is complete, so that parallel builds cannot break each other's result.
  const unfinished = `${binary}.${process.pid}`;
  const flags = ["-trimpath", "-ldflags", `-s -w -X k8s.io/component-base/version.gitVersion=${KUBERNETES_VERSION}`];
  const { status, error } = spawnSync("go", ["build", ...flags, "-o", unfinished, "."], {
    cwd: SOURCES,
    env: { ...process.env, CGO_ENABLED: "0" },
    stdio: "inherit",
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`go build ended with ${status}`);
  renameSync(unfinished, binary);
  return binary;
}

if (import.meta.main) console.log(build());
