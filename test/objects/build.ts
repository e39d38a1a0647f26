/** A server with the protocol of S3, as one binary. As a program, this file builds it and prints its path. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildGo, GO_CACHE, type GoProgram, goBinary } from "../support/go-program.ts";

const OBJECT_SERVER: GoProgram = {
  name: "object-server",
  sources: join(import.meta.dirname, "server"),
  package: "github.com/versity/versitygw/cmd/versitygw",
  cache: join(GO_CACHE, "objects"),
  // go.mod, one of its sources, has the release.
  release: "",
  linkerFlags: "",
};

/** The path of the binary, even before it is built. */
export function objectServerBinary(): string {
  return goBinary(OBJECT_SERVER);
}

/** True if suites that need a real server of objects can run here. */
export function objectServerBuilt(): boolean {
  return existsSync(objectServerBinary());
}

if (import.meta.main) console.log(buildGo(OBJECT_SERVER));
