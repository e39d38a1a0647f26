/**
 * Writes `src/gen` from `proto`: TypeScript for every message and service, and `gangway.binpb`, the self-contained
 * descriptors with comments. Protos that are not ours come from the registries into the git-ignored `proto/vendor`.
 * The table of limits in `docs/api.md` is made from them too, `openapi.json` for clients of HTTP, and `clients/proto`,
 * the protos for clients, with what `clients/python` has of them.
 * Changes that break clients of `proto/landed.binpb` are refused; with `--land` the new descriptors then take its
 * place: do that when clients may begin to use what was added.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const PROTOVALIDATE = "github.com/bufbuild/protovalidate@v1.2.2";
const protoDir = dirname(fileURLToPath(import.meta.url));
const root = dirname(protoDir);

const { values } = parseArgs({ options: { land: { type: "boolean" } } });

fetchVendored();
buf("lint");
const landed = join(protoDir, "landed.binpb");
if (existsSync(landed)) buf("breaking", "--path", "gangway", "--against", landed);
buf("generate");
const served = ["gangway", "vendor/grpc", "vendor/google/rpc"].flatMap((path) => ["--path", path]);
buf("build", ...served, "-o", join(root, "src/gen/gangway.binpb"));
for (const script of [
  "limits-table.ts",
  "judged-table.ts",
  "settings-table.ts",
  "client-protos.ts",
  "client-python.ts",
  "openapi.ts",
]) {
  execFileSync(process.execPath, [join(protoDir, script)], { stdio: "inherit" });
}
if (values.land) buf("build", "--path", "gangway", "--exclude-source-info", "-o", landed);

function buf(...args: string[]): void {
  execFileSync(join(root, "node_modules/.bin/buf"), args, { cwd: protoDir, stdio: "inherit" });
}

function fetchVendored(): void {
  const validate = join(protoDir, "vendor/buf/validate/validate.proto");
  if (!existsSync(validate)) {
    const listing = execFileSync("go", ["mod", "download", "-json", PROTOVALIDATE], { encoding: "utf8", cwd: "/" });
    const { Dir } = JSON.parse(listing) as { Dir: string };
    copy(join(Dir, "proto/protovalidate/buf/validate/validate.proto"), validate);
  }
  for (const name of ["code", "status", "error_details"]) vendor("google-proto-files", `google/rpc/${name}.proto`);
  vendor("@grpc/reflection/build/proto", "grpc/reflection/v1/reflection.proto");
  const health = join(root, "node_modules/grpc-health-check/proto/health/v1/health.proto");
  copy(health, join(protoDir, "vendor/grpc/health/v1/health.proto"));
}

function vendor(from: string, path: string): void {
  copy(join(root, "node_modules", from, path), join(protoDir, "vendor", path));
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  rmSync(to, { force: true });
  copyFileSync(from, to);
}
