/** Programs that tests run and Go builds: each once, into a cache folder that is keyed by its sources. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export type GoProgram = {
  /** The name of the binary. */
  readonly name: string;
  /** The folder of its `go.mod`, without folders of its own. */
  readonly sources: string;
  /** What `go build` gets, as seen from `sources`. */
  readonly package: string;
  /** The folder that keeps binaries, and what keys them beside the sources. */
  readonly cache: string;
  readonly release: string;
  readonly linkerFlags: string;
};

/** The folder of this user that keeps what Go builds for tests. */
export const GO_CACHE = join(homedir(), ".cache", "gangway");

/** The path of the binary of these sources, even before it is built. */
export function goBinary({ name, sources, cache, release }: GoProgram): string {
  const hash = createHash("sha256").update(`${release} ${process.platform} ${process.arch}\0`);
  for (const file of readdirSync(sources).sort()) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(sources, file)))
      .update("\0");
  }
  return join(cache, hash.digest("hex").slice(0, 16), name);
}

/** Builds the binary if it does not exist, and returns its path. Throws if Go fails. */
export function buildGo(program: GoProgram): string {
  const binary = goBinary(program);
  if (existsSync(binary)) return binary;
  mkdirSync(join(binary, ".."), { recursive: true });
  // The binary has its own name until it is complete, so that parallel builds cannot break each other's result.
  const unfinished = `${binary}.${process.pid}`;
  const flags = ["-trimpath", "-ldflags", `-s -w ${program.linkerFlags}`.trimEnd()];
  const { status, error } = spawnSync("go", ["build", ...flags, "-o", unfinished, program.package], {
    cwd: program.sources,
    env: { ...process.env, CGO_ENABLED: "0" },
    stdio: "inherit",
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`go build ended with ${status}`);
  renameSync(unfinished, binary);
  return binary;
}
