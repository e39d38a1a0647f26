import assert from "node:assert/strict";
import { test } from "node:test";
import { AnchorEventWriter } from "../../src/adapters/cluster/anchor-event-writer.ts";
import type { KubeRequest, KubeResult } from "../../src/adapters/cluster/client.ts";
import { arrayAt, objectAt } from "../../src/runtime/json.ts";
import { clientOf, clock, configMap, create, INSTALLATION, seededRandom, startSim, until } from "./harness.ts";

const about = { cluster: "sim", namespace: "default", anchor: "j-admission-1", jobUid: "uid" };
const events = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    type: "Normal" as const,
    reason: "SuccessfulCreatePod",
    message: `m${index}`,
  }));

test("events are about the anchor and carry the job's uid", async (t) => {
  const sim = await startSim();
  t.after(() => sim.close());
  const client = clientOf(sim.kubeconfig());
  await create(client, "configmaps", configMap("j-admission-1"));
  const errors: unknown[] = [];
  const options = {
    client,
    clock,
    installation: INSTALLATION,
    random: seededRandom(1),
    onError: (error: unknown) => errors.push(error),
  };
  const eventWriter = new AnchorEventWriter({ ...options, uidOf: () => "anchor-uid" });
  eventWriter.write({ ...about, events: events(3) });
  const query = { labelSelector: "gangway.dev/job-uid=uid" };
  const list = async () => {
    const listed = await client.request({ method: "GET", path: "/api/v1/namespaces/default/events", query });
    return listed.kind === "ok" ? arrayAt(listed.object, "items") : [];
  };
  await until(async () => (await list()).length === 3, "three events are written");
  const [event] = await list();
  assert.deepEqual(objectAt(event, "involvedObject"), {
    apiVersion: "v1",
    kind: "ConfigMap",
    namespace: "default",
    name: "j-admission-1",
    uid: "anchor-uid",
  });
  assert.deepEqual(errors, []);
  eventWriter.close();
  await client.close();
});

test("a cluster that does not answer costs a bounded number of events, few errors and no waiting", async () => {
  const errors: unknown[] = [];
  const answers: ((result: KubeResult) => void)[] = [];
  const asked: KubeRequest[] = [];
  const request = (one: KubeRequest) => {
    asked.push(one);
    return new Promise<KubeResult>((resolve) => answers.push(resolve));
  };
  const onError = (error: unknown) => errors.push(error);
  const options = {
    client: { request },
    clock,
    installation: INSTALLATION,
    random: seededRandom(1),
    uidOf: () => undefined,
  };
  const eventWriter = new AnchorEventWriter({ ...options, onError });
  eventWriter.write({ ...about, events: events(5_000) });
  eventWriter.write({ ...about, events: events(5_000) });
  assert.equal(asked.length, 2, "few at a time");
  assert.equal(errors.length, 1, "the loss is said once");
  for (let at = 0; at < answers.length; at++) {
    answers[at]?.({ kind: "ok", object: {} });
    await Promise.resolve().then(() => Promise.resolve());
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(asked.length >= 1_000 && asked.length <= 1_004, `${asked.length} written`);
  eventWriter.close();
});
