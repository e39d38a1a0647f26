import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newDataFolder } from "../support/data-folder.ts";
import { ServiceProcess } from "../support/service.ts";

const BIN = join(import.meta.dirname, "../../bin/gangway");

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

  start(t: TestContext, ...args: readonly string[]): ChildProcess {
    const child = spawn(process.execPath, this.#argv(args), { stdio: ["pipe", "pipe", "inherit"] });
    t.after(() => child.kill("SIGKILL"));
    return child;
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

async function codeOf(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, "exit")) as [number | null];
  return code;
}

test("scripts' tokens survive a kill of the service, and are released when the scripts end", async (t) => {
  const directory = newDataFolder("gangway-tokens-");
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const listen = `127.0.0.1:${await freePort()}`;
  const shell = new Shell(listen);
  const first = await serve(t, { directory, listen });
  const registered = await shell.run("quota", "register", "ex:warehouse", "--quota", "2", "--default-lease", "30s");
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
  await Promise.all([patient, stopped].map((child) => once(child.stdout!, "data")));
  const third = await shell.run("alloc", "ex:warehouse", "c");
  assert.deepEqual([third.code, third.stderr], [3, "error: exhausted: pool ex:warehouse uses 2 of 2, 1 requested\n"]);

  await first.kill("SIGKILL");
  await serve(t, { directory, listen });
  const held = await shell.run("quota", "allocations", "-o", "name");
  assert.deepEqual(held.stdout.trim().split("\n").sort(), ["allocation/a", "allocation/b"]);

  const waiting = shell.start(t, "alloc", "ex:warehouse", "c", "--wait=60s");
  // The waiting one may well end first.
  const ended = Promise.all([codeOf(stopped), codeOf(waiting)]);
  stopped.kill("SIGTERM");
  assert.deepEqual(await ended, [9, 0]);
  const endedWith = codeOf(patient);
  patient.stdin?.end("\n");
  assert.equal(await endedWith, 5);
  assert.equal((await shell.run("release", "ex:warehouse", "c")).stdout, "ex:warehouse c released\n");
  const none = await shell.run("quota", "allocations");
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, "", "no allocations\n"]);
  const audit = await shell.run("quota", "audit", "--subject", "ex:warehouse", "-o", "name");
  assert.equal(audit.stdout, "RegisterResourceQuota/ex:warehouse\n");
});
