import assert from "node:assert/strict";
import { type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { type TestContext, test } from "node:test";
import { newDataFolder } from "../support/data-folder.ts";
import { ServiceProcess } from "../support/service.ts";

const BIN = join(import.meta.dirname, "../../bin/gangway");

/** A command that runs beside the test. Its end is never missed, however late the test asks for it. */
class Started {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly code: Promise<number | null>;

  constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.child = child;
    this.code = once(child, "exit").then(([code]) => code as number | null);
  }

  /** Resolves once it has printed something. */
  async printed(): Promise<void> {
    const ended = this.code.then((code) => assert.fail(`it ended with ${code} before it printed anything`));
    await Promise.race([once(this.child.stdout, "data"), ended]);
  }
}

/** The command line as a shell runs it, against one address. */
class Shell {
  readonly #address: string;

  constructor(address: string) {
    this.#address = address;
  }

  run(...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    return new Promise((resolve) => {
      execFile(process.execPath, this.#argv(args), (error, stdout, stderr) => {
        resolve({ code: Number(error?.code ?? 0), stdout, stderr });
      });
    });
  }

  start(t: TestContext, ...args: readonly string[]): Started {
    const started = new Started(spawn(process.execPath, this.#argv(args), { stdio: ["pipe", "pipe", "inherit"] }));
    t.after(() => started.child.kill("SIGKILL"));
    return started;
  }

  #argv(args: readonly string[]): string[] {
    return [BIN, "--address", this.#address, ...args];
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

async function serve(t: TestContext, of: { directory: string; listen: string }): Promise<ServiceProcess> {
  const service = new ServiceProcess(["--data", of.directory, "--listen", of.listen, "--no-examples"]);
  t.after(() => service.kill());
  assert.ok((await service.listening()) !== null, service.output);
  return service;
}

test("scripts' tokens survive a kill of the service, and are released when the scripts end", async (t) => {
  const directory = newDataFolder("gangway-tokens-");
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const listen = `127.0.0.1:${await freePort()}`;
  const shell = new Shell(listen);
  const first = await serve(t, { directory, listen });
  // However long a busy machine takes for the restart, the lease is longer.
  const registered = await shell.run("quota", "register", "ex:warehouse", "--quota", "2", "--default-lease", "1h");
  assert.deepEqual([registered.code, registered.stderr], [0, ""]);

  const patient = shell.start(
    t,
    "alloc",
    "ex:warehouse",
    "a",
    "--exec",
    "--",
    "sh",
    "-c",
    "echo ready; read line; exit 5",
  );
  const trap = 'trap "exit 9" TERM; echo ready; while :; do sleep 0.05; done';
  const stopped = shell.start(t, "alloc", "ex:warehouse", "b", "--exec", "--", "sh", "-c", trap);
  await Promise.all([patient.printed(), stopped.printed()]);
  const third = await shell.run("alloc", "ex:warehouse", "c");
  assert.deepEqual([third.code, third.stderr], [3, "error: exhausted: pool ex:warehouse uses 2 of 2, 1 requested\n"]);

  await first.kill("SIGKILL");
  await serve(t, { directory, listen });
  const held = await shell.run("quota", "allocations", "-o", "name");
  assert.deepEqual(held.stdout.trim().split("\n").sort(), ["allocation/a", "allocation/b"]);

  const waiting = shell.start(t, "alloc", "ex:warehouse", "c", "--wait=1h");
  stopped.child.kill("SIGTERM");
  assert.deepEqual([await stopped.code, await waiting.code], [9, 0]);
  patient.child.stdin.end("\n");
  assert.equal(await patient.code, 5);
  assert.equal((await shell.run("release", "ex:warehouse", "c")).stdout, "ex:warehouse c released\n");
  const none = await shell.run("quota", "allocations");
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, "", "no allocations\n"]);
  const audit = await shell.run("quota", "audit", "--subject", "ex:warehouse", "-o", "name");
  assert.equal(audit.stdout, "RegisterResourceQuota/ex:warehouse\n");
});
