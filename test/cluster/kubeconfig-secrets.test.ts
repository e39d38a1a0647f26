/** Kubeconfigs in Secrets of simulated clusters. */
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { KubeResult } from "../../src/adapters/cluster/client.ts";
import { openCredentials } from "../../src/adapters/cluster/credentials.ts";
import { unreachable } from "../../src/adapters/cluster/kube-failure.ts";
import { KubeconfigSecrets } from "../../src/adapters/cluster/kubeconfig-secrets.ts";
import type { StoredReference } from "../../src/adapters/cluster/stored-credentials.ts";
import { onlyDefault } from "../../src/core/admin/credential-keys.ts";
import { clientOf, create, fastClock, kubeconfigOf, remove, startSim, until } from "./harness.ts";

const TOKEN = "token-of-the-kubeconfig";
const never = new AbortController().signal;
const REFERENCE: StoredReference = {
  kind: "secret",
  cluster: "hub",
  namespace: "default",
  name: "west",
  key: "value",
  context: "",
};
const WEST = { name: "west", credentials: REFERENCE };

const config = (server: string) => {
  const text = JSON.parse(kubeconfigOf(server));
  text.users[0].user = { token: TOKEN };
  return JSON.stringify(text);
};

async function scene(t: TestContext) {
  const sim = await startSim();
  const client = clientOf(sim.kubeconfig());
  t.after(async () => {
    await client.close();
    await sim.close();
  });
  const seen = { errors: [] as string[], changes: 0, isAway: false, isConnected: true };
  const secrets = new KubeconfigSecrets({
    clock: fastClock(50),
    allowLocal: false,
    ownAccount: { server: sim.url, folder: join(tmpdir(), "there-is-no-such-folder") },
    readObject: (cluster, path, signal): Promise<KubeResult> | null => {
      assert.equal(cluster, "hub");
      if (!seen.isConnected) return null;
      return seen.isAway ? Promise.resolve(unreachable("away")) : client.request({ method: "GET", path }, signal);
    },
    onChanged: () => {
      seen.changes += 1;
    },
    onError: (error) => seen.errors.push(String(error)),
  });
  const put = async (data: Record<string, string>) => {
    await remove(client, "secrets", "west");
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
    const body = { apiVersion: "v1", kind: "Secret", metadata: { name: "west" }, data: Object.fromEntries(encoded) };
    assert.equal((await create(client, "secrets", body)).kind, "ok");
  };
  const open = () =>
    openCredentials(REFERENCE, {
      cluster: "west",
      keys: onlyDefault(null),
      allowLocal: false,
      readSecret: (reference) => secrets.textInForce(reference),
    });
  return { sim, client, secrets, seen, put, open };
}

test("a cluster is connectable once its Secret was read, and differs when the content has changed", async (t) => {
  const { secrets, seen, put, open } = await scene(t);
  await put({ value: config("https://one.example.com") });
  assert.deepEqual(secrets.connectable([WEST]), [], "not read yet");
  await assert.rejects(open(), /the Secret default\/west of cluster hub was not read yet/);
  await secrets.refresh(never);
  const first = secrets.connectable([WEST]);
  assert.equal(first.length, 1);
  assert.ok(!JSON.stringify(first).includes(TOKEN));
  assert.match(await open(), /one\.example\.com/);
  await secrets.refresh(never);
  assert.deepEqual([secrets.connectable([WEST]), seen.changes], [first, 1], "the same content changes nothing");
  await put({ value: config("https://two.example.com") });
  await secrets.refresh(never);
  assert.notDeepEqual(secrets.connectable([WEST]), first);
  assert.match(await open(), /two\.example\.com/);
  assert.deepEqual([seen.changes, seen.errors], [2, []]);
  assert.deepEqual(secrets.connectable([]), []);
  assert.deepEqual(secrets.connectable([WEST]), [], "a reference that went away was forgotten");
});

test("the Secrets are read while the process runs, a new reference at once", async (t) => {
  const { secrets, put, open } = await scene(t);
  const stop = new AbortController();
  const running = secrets.run(stop.signal);
  await put({ value: config("https://one.example.com") });
  secrets.connectable([WEST]);
  await until(() => secrets.connectable([WEST]).length === 1, "read");
  await put({ value: config("https://two.example.com") });
  await until(async () => /two\.example\.com/.test(await open()), "read again");
  stop.abort();
  await running;
});

type Scene = Awaited<ReturnType<typeof scene>>;
const unreadable: Record<string, { make: (of: Scene) => unknown; says: RegExp }> = {
  "does not exist": {
    make: ({ client }) => remove(client, "secrets", "west"),
    says: /^the Secret default\/west of cluster hub does not exist$/,
  },
  "lacks the key": {
    make: ({ put }) => put({ kubeconfig: "x" }),
    says: /^the Secret default\/west of cluster hub has no key value$/,
  },
  "is too large": {
    make: ({ put }) => put({ value: "#".repeat(65_537) }),
    says: /^the Secret default\/west of cluster hub has more than 65536 bytes in its key value$/,
  },
  "holds no kubeconfig": {
    make: ({ put }) => put({ value: `password: ${TOKEN}` }),
    says: /^the Secret default\/west of cluster hub: password is not allowed: allowed are /,
  },
  "holds a kubeconfig that runs a program": {
    make: ({ put }) => {
      const text = JSON.parse(config("https://one.example.com"));
      text.users[0].user = { exec: { command: "sh" } };
      return put({ value: JSON.stringify(text) });
    },
    says: /^the Secret default\/west of cluster hub: users\[0\]\.user\.exec runs a program, which this server does not/,
  },
  "is in a cluster that does not answer": {
    make: ({ seen }) => {
      seen.isAway = true;
    },
    says: /^the Secret default\/west of cluster hub cannot be read: that cluster does not answer$/,
  },
  "is in a cluster that is not connected": {
    make: ({ seen }) => {
      seen.isConnected = false;
    },
    says: /^the Secret default\/west of cluster hub cannot be read: that cluster is not connected$/,
  },
};
for (const [what, { make, says }] of Object.entries(unreadable)) {
  test(`a Secret that ${what} is told by name alone, and what was read before counts`, async (t) => {
    const of = await scene(t);
    const { secrets, seen, put, open } = of;
    await put({ value: config("https://one.example.com") });
    secrets.connectable([WEST]);
    await make(of);
    await secrets.refresh(never);
    assert.equal(secrets.connectable([WEST]).length, 1, "the registry is to say why it cannot connect");
    await assert.rejects(open(), ({ message }: Error) => says.test(message) && !message.includes(TOKEN));
    assert.deepEqual(seen.errors, [], "the registry reports it");
    Object.assign(seen, { isAway: false, isConnected: true });
    await put({ value: config("https://one.example.com") });
    await secrets.refresh(never);
    const read = secrets.connectable([WEST]);
    await make(of);
    for (let at = 0; at < 2; at += 1) await secrets.refresh(never);
    assert.deepEqual(secrets.connectable([WEST]), read);
    assert.match(await open(), /one\.example\.com/);
    assert.equal(seen.errors.length, 1);
    assert.match(seen.errors[0] ?? "", /; the kubeconfig that was read before stays in force$/);
    assert.ok(!seen.errors.join().includes(TOKEN));
  });
}

test("a process outside of any cluster says so for a Secret of its own cluster", async (t) => {
  const { secrets } = await scene(t);
  await assert.rejects(
    secrets.read({ ...REFERENCE, cluster: "" }),
    /^Error: this process does not run in a Kubernetes cluster: name a registered cluster of the Secret$/,
  );
});
