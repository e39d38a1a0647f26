/** Says whether this machine has what some commands and clients of the pages need besides Node and npm. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { controlPlaneBuilt } from "../kube/build.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { root } from "./pages.ts";

/** True where a page can set up PostgreSQL and Redis, dump the database and restore it. */
export function hasStores(postgres: string | null): boolean {
  const programs = ["pg_dump", "pg_restore", "psql"];
  return postgres !== null && hasRedisServer() && programs.every((program) => runs(program, ["--version"]));
}

/** True where a page can register a real Kubernetes cluster. */
export function hasRealCluster(): boolean {
  return controlPlaneBuilt() && runs("kubectl", ["version", "--client"]);
}

/** The first Python of the PATH, or the system's own, that has grpcio and protobuf; null where none has. */
export function pythonWithGrpc(): string | null {
  return pythonWith("grpc, google.protobuf");
}

/** The first one that has what all tests of the client in Python need; null where none has. */
export function pythonOfClient(): string | null {
  return pythonWith("grpc, google.protobuf, yaml");
}

/** True where that Python can check types. */
export function hasMypy(): boolean {
  return runs(pythonOfClient() ?? "", ["-m", "mypy", "--version"]);
}

function pythonWith(packages: string): string | null {
  return ["python3", "/usr/bin/python3"].find((python) => runs(python, ["-c", `import ${packages}`])) ?? null;
}

/** True where protos can be compiled by protoc: some packages of it lack the protos of Google that ours import. */
export function hasProtoc(): boolean {
  const protos = join(root, "clients/proto");
  return runs("protoc", ["-I", protos, "--descriptor_set_out=/dev/null", "gangway/v1/freeze.proto"]);
}

/** True where examples in Python that need no packages can run. */
export function hasPython(): boolean {
  return runs("python3", ["--version"]);
}

function runs(program: string, args: readonly string[]): boolean {
  return program !== "" && spawnSync(program, args).status === 0;
}
