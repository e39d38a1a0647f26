import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { readManifests } from "../../src/cli/manifest/read-manifests.ts";
import { processIo } from "../../src/cli/shell/process-io.ts";
import { KINDS } from "../../src/core/kinds/registry.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { ServiceProcess } from "../support/service.ts";
import { findShippedRuntime } from "../support/shipped-runtimes.ts";

const root = join(import.meta.dirname, "../..");
const own = join(root, "examples/kinds");
/** A folder of manifests of other projects, which must be accepted unchanged. */
const wild = process.env["GANGWAY_MANIFESTS"];
const folders = wild === undefined ? [own] : [own, wild];

test("there is an example of every kind, and all are read as they are", async () => {
  const options = {
    io: processIo(process, () => {}),
    kinds: OWN_KINDS,
    namespace: { name: "default", isExplicit: false },
    findRuntime: findShippedRuntime,
  };
  const read = await readManifests(folders, options);
  assert.deepEqual(read.errors, []);
  const shown = new Set((await readManifests([own], options)).ready.map(({ job }) => job.spec?.kind));
  assert.deepEqual([...shown].sort(), KINDS.map(({ name }) => name).sort());
});

test("a job of every kind runs to its end on the simulated clusters", async (t) => {
  const directory = newDataFolder("gangway-kinds-");
  const service = new ServiceProcess(["--data", directory, "--listen", "127.0.0.1:0", "--no-examples"]);
  t.after(async () => {
    await service.kill();
    rmSync(directory, { recursive: true, force: true });
  });
  const address = await service.listening();
  assert.ok(address !== null, service.output);
  const files = folders.flatMap((folder) => ["-f", folder]);
  const args = [join(root, "bin/gangway"), "--address", address, "submit", ...files, "--wait"];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  assert.doesNotMatch(stdout, /failed/i);
  const list = [join(root, "bin/gangway"), "--address", address, "list", "--all-namespaces", "-o", "json"];
  const listed = await promisify(execFile)(process.execPath, list);
  const jobs = listed.stdout.match(/"phase": ?"[A-Z_]+"/g) ?? [];
  assert.ok(jobs.length >= KINDS.length, listed.stdout);
  assert.ok(
    jobs.every((phase) => phase.includes("SUCCEEDED")),
    jobs.join(),
  );
});
