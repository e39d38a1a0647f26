import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitUntil } from "../support/bounded.ts";
import { freePort } from "../support/redis-server.ts";
import { objectServerBinary } from "./build.ts";

/** The credentials that the server knows. It checks the signature of every request. */
export const ACCESS_KEY = "access";
export const SECRET_KEY = "hidden";

/** A server with the protocol of S3 on a free loopback port, with one bucket whose objects are files. */
export async function startObjectServer(bucket: string) {
  const folder = mkdtempSync(join(tmpdir(), "gangway-object-server-"));
  mkdirSync(join(folder, bucket));
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(objectServerBinary(), ["--quiet", "--port", address, "posix", "--nometa", folder], {
    stdio: "ignore",
    env: { ROOT_ACCESS_KEY: ACCESS_KEY, ROOT_SECRET_KEY: SECRET_KEY },
  });
  const ended = once(child, "exit");
  const endpoint = `http://${address}`;
  const answers = () =>
    fetch(endpoint).then(
      ({ status }) => status === 403,
      () => false,
    );
  await waitUntil("the server of objects refuses a request without a signature", answers, { pollMs: 100 });
  return {
    endpoint,
    async [Symbol.asyncDispose](): Promise<void> {
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
