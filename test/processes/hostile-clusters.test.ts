import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { run } from "../cli/harness.ts";
import { waitUntil } from "../support/bounded.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { MainProcess } from "../support/main-process.ts";

const SECRET = "words-of-the-server";
const data = newDataFolder("gangway-hostile-");
let service: MainProcess;
let address = "";

before(async () => {
  service = new MainProcess(["up", "--no-examples", "--listen", "127.0.0.1:0", "--data", data], {
    GANGWAY_CREDENTIALS_KEY: randomBytes(32).toString("base64"),
  });
  await waitUntil("the service listens", () => service.address !== null || service.hasEnded);
  address = service.address ?? "";
});

after(async () => {
  await service.end("SIGTERM");
  rmSync(data, { recursive: true, force: true });
});

function kubeconfig(cluster: object, user: object = { token: "t" }, context: object = { cluster: "c", user: "u" }) {
  return JSON.stringify({
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user }],
    contexts: [{ name: "c", context }],
    "current-context": "c",
  });
}

const add = (name: string, text: string) =>
  run(["cluster", "add", name, "--kubeconfig", "file.yaml"], { files: { "file.yaml": text }, address });

async function names(): Promise<readonly string[]> {
  const { exitCode, stdout, stderr } = await run(["cluster", "list", "-o", "name"], { address });
  assert.equal(exitCode, 0, stderr);
  return stdout.trim().split("\n");
}

const server = "https://127.0.0.1:1";
const refused: Record<string, { text: string; says: RegExp }> = {
  "a file of the server": {
    text: kubeconfig({ server }, { "token-file": "/etc/hostname" }),
    says: /users\[0\]\.user\.token-file is not allowed/,
  },
  "a device": { text: kubeconfig({ server }, { "token-file": "/dev/zero" }), says: /token-file is not allowed/ },
  "a TLS name that is a number": {
    text: kubeconfig({ server, "tls-server-name": 5 }),
    says: /clusters\[0\]\.cluster\.tls-server-name must be text, but is a number/,
  },
  "a context without user": {
    text: kubeconfig({ server }, {}, { cluster: "c" }),
    says: /contexts\[0\]\.context\.user is missing/,
  },
  "a cloud's metadata": {
    text: kubeconfig({ server: "http://169.254.169.254", "insecure-skip-tls-verify": true }),
    says: /169\.254\.169\.254 leads to a link-local address: GANGWAY_CLUSTER_HOSTS must list a range/,
  },
  "a proxy": { text: kubeconfig({ server, "proxy-url": "http://127.0.0.1:1" }), says: /leads through a proxy/ },
  "90,000 keys": {
    text: `{${Array.from({ length: 90_000 }, (_, at) => `k${at}: 1`).join(",")}}`,
    says: /65536/,
  },
  "500,000 brackets": { text: "[".repeat(500_000), says: /65536/ },
  "brackets up to the limit": { text: "[".repeat(65_536), says: /must nest at most 16 levels/ },
};
for (const [name, { text, says }] of Object.entries(refused)) {
  test(`the service refuses a kubeconfig with ${name}, and registers nothing`, async () => {
    const earlier = await names();
    const { exitCode, stderr } = await add("hostile", text);
    assert.equal(exitCode, 3, stderr);
    assert.match(stderr, says);
    assert.deepEqual(await names(), earlier);
  });
}

const answers: Record<string, string | null> = {
  resets: null,
  "sends nonsense": `${SECRET}\r\n\r\n`,
  "sends other words": `HTTP/1.1 200 OK\r\ncontent-length: ${SECRET.length}\r\n\r\n${SECRET}`,
};
for (const [name, text] of Object.entries(answers)) {
  test(`the service goes on beside a cluster whose server ${name}, and passes on none of its words`, async (t) => {
    let requests = 0;
    const hostile = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", () => {
        requests += 1;
        if (text === null) socket.resetAndDestroy();
        else socket.end(text);
      });
    });
    await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
    t.after(() => hostile.close());
    const bound = hostile.address();
    assert.ok(typeof bound === "object" && bound !== null);
    const url = `http://127.0.0.1:${bound.port}`;
    const cluster = `hostile-${bound.port}`;
    const added = await add(cluster, kubeconfig({ server: url, "insecure-skip-tls-verify": true }));
    assert.equal(added.exitCode, 5);
    assert.match(added.stdout, /error: (Unreachable|NotKubernetes): /);
    assert.ok(!`${added.stdout}${added.stderr}`.includes(SECRET));
    await waitUntil("its watches tried again", () => requests >= 10);
    assert.ok((await names()).includes(`cluster/${cluster}`));
    const removed = await run(["cluster", "remove", cluster], { address });
    assert.equal(removed.exitCode, 0, removed.stderr);
    assert.equal(service.hasEnded, false, service.output);
  });
}
