/**
 * The control plane of the tests as one binary, kept in a cache folder that is keyed by its sources. Run as a program it
 * builds the binary unless it is there (minutes when cold) and prints its path.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** What the API servers answer to `GET /version`; the modules of go.mod are of this release. */
const KUBERNETES_VERSION = "v1.36.3";
const SOURCES = join(import.meta.dirname, "control-plane");

/** Where the binary of these sources is, or would be. */
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

/** Whether suites that need a real control plane can run here. */
export function controlPlaneBuilt(): boolean {
  return existsSync(controlPlaneBinary());
}

/** Builds the binary if it is not there. Throws if Go cannot. */
function build(): string {
  const binary = controlPlaneBinary();
  if (existsSync(binary)) return binary;
  mkdirSync(join(binary, ".."), { recursive: true });
  // Under a name of its own until it is whole: builds beside each other cannot break what the other has made.
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
