import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SimModel } from "../../src/adapters/simcluster/model.ts";
import { replay } from "../../src/adapters/simcluster/objects/journal.ts";
import type { KubeObject } from "../../src/adapters/simcluster/objects/kube-object.ts";
import { isTerminalPod, keyOf } from "../../src/adapters/simcluster/objects/kube-object.ts";
import { RESOURCE_KINDS } from "../../src/adapters/simcluster/objects/resource-kinds.ts";
import { StatusError } from "../../src/adapters/simcluster/objects/status-error.ts";
import type { Resources } from "../../src/core/pods/resources.ts";
import { addResources, fitsIn, podRequests, readResources } from "../../src/core/pods/resources.ts";
import { objectAt, stringAt } from "../../src/runtime/json.ts";
import { create, destroy, newModel, podManifest, seeded } from "./support.ts";

type Command =
  | { kind: "pod"; name: number; gpus: number; policy: string; exit: string; run: string; owner: number | null }
  | { kind: "delete"; name: number; grace: number | undefined }
  | { kind: "anchor" | "dropAnchor"; name: number; propagation: "Background" | "Foreground" | "Orphan" }
  | { kind: "cordon" | "uncordon" | "loseNode" | "addNode"; node: number }
  | { kind: "advance"; ms: number }
  | { kind: "reload" };

const name = fc.nat({ max: 11 });
const commands = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("pod" as const),
        name,
        gpus: fc.constantFrom(0, 1, 3, 8),
        policy: fc.constantFrom("Never", "OnFailure", "Always"),
        exit: fc.constantFrom("0", "1,0", "137", "nonsense"),
        run: fc.constantFrom("20ms", "2s", "forever"),
        owner: fc.option(fc.nat({ max: 2 })),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("delete" as const),
        name,
        grace: fc.constantFrom(undefined, 0, 1),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom("anchor" as const, "dropAnchor" as const),
        name: fc.nat({ max: 2 }),
        propagation: fc.constantFrom("Background" as const, "Foreground" as const, "Orphan" as const),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constantFrom("cordon" as const, "uncordon" as const, "loseNode" as const, "addNode" as const),
        node: fc.nat({ max: 2 }),
      }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("advance" as const), ms: fc.nat({ max: 3000 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("reload" as const) }) },
  ),
  { maxLength: 60, size: "max" },
);

function apply(model: SimModel, command: Exclude<Command, { kind: "reload" }>): void {
  switch (command.kind) {
    case "pod": {
      const anchor = model.store.get("configmaps", `default/anchor-${command.owner}`)?.object;
      const uid = anchor?.metadata.uid ?? "00000000-0000-4000-8000-000000000000";
      const owner = { apiVersion: "v1", kind: "ConfigMap", name: `anchor-${command.owner}`, uid, controller: true };
      const metadata = command.owner === null ? {} : { ownerReferences: [{ ...owner, blockOwnerDeletion: true }] };
      const sim = { run: command.run, "exit-code": command.exit };
      const spec = { restartPolicy: command.policy };
      const manifest = podManifest(`p${command.name}`, { gpus: command.gpus, sim, metadata, spec });
      create(model, "pods", "default", manifest);
      return;
    }
    case "delete":
      destroy(model, "pods", "default", `p${command.name}`, { graceSeconds: command.grace });
      return;
    case "anchor":
      create(model, "configmaps", "default", { metadata: { name: `anchor-${command.name}` } });
      return;
    case "dropAnchor":
      destroy(model, "configmaps", "default", `anchor-${command.name}`, { propagation: command.propagation });
      return;
    case "cordon":
    case "uncordon":
      model.cordonNode(`n${command.node}`, command.kind === "cordon");
      return;
    case "loseNode":
      model.removeNode(`n${command.node}`);
      return;
    case "addNode":
      create(model, "nodes", null, {
        metadata: { name: `n${command.node}` },
        status: { allocatable: { cpu: "4", "nvidia.com/gpu": "4" } },
      });
      return;
    case "advance":
      model.advance(model.nowMs + command.ms);
  }
}

/** Here a refusal is an answer like any other. */
function applyOrRefuse(model: SimModel, command: Exclude<Command, { kind: "reload" }>): void {
  try {
    apply(model, command);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
  }
}

function assertNoNodeIsOvercommitted(model: SimModel): void {
  const used = new Map<string, Resources>();
  for (const pod of model.store.objects("pods")) {
    const node = stringAt(pod.spec, "nodeName");
    if (node === undefined || isTerminalPod(pod)) continue;
    used.set(node, addResources(used.get(node) ?? {}, podRequests(pod.spec ?? {})));
  }
  for (const node of model.store.objects("nodes")) {
    const allocatable = readResources(objectAt(node.status, "allocatable"));
    const here = used.get(node.metadata.name) ?? {};
    assert.ok(fitsIn(here, allocatable), `${node.metadata.name} has given out ${JSON.stringify(here)}`);
  }
}

test("always, the journal yields the whole state, versions only grow and no node is over-committed", () => {
  fc.assert(
    fc.property(commands, fc.integer(), (history, seed) => {
      let model = newModel(2, { seed });
      model.takeChanges();
      let text = `${JSON.stringify({ snapshot: model.snapshot() })}\n`;
      let version = model.store.version;
      for (const command of history) {
        if (command.kind === "reload") {
          const saved = replay(text);
          assert.ok(saved !== null);
          model = new SimModel(saved, { random: seeded(seed) });
        } else applyOrRefuse(model, command);
        const changes = model.takeChanges();
        text += `${JSON.stringify({ nowMs: model.nowMs, version: model.store.version, changes })}\n`;
        for (const event of model.store.history.after(version) ?? []) {
          assert.ok(event.version > version, `${event.version} after ${version}`);
          assert.equal(event.object.metadata.resourceVersion, String(event.version));
          version = event.version;
        }
        assert.equal(model.store.version, version);
        assert.deepEqual(byKey(replay(text)), byKey(JSON.parse(JSON.stringify(model.snapshot()))));
        assertNoNodeIsOvercommitted(model);
      }
    }),
    { numRuns: 150 },
  );
});

function byKey(snapshot: ReturnType<typeof replay>) {
  assert.ok(snapshot !== null);
  const entries = snapshot.entries.map(
    (entry) => [`${entry.resource}/${keyOf(entry.object.metadata)}`, entry] as const,
  );
  return { ...snapshot, entries: Object.fromEntries(entries) };
}

test("a journal cut at any place gives the state after its last whole line", () => {
  const model = newModel(1);
  model.takeChanges();
  let text = `${JSON.stringify({ snapshot: model.snapshot() })}\n`;
  const states = [byKey(replay(text))];
  const ends = [text.length];
  for (const gpus of [1, 2, 3]) {
    create(model, "pods", "default", podManifest(`p${gpus}`, { gpus }));
    model.advance(model.nowMs + 400);
    text += `${JSON.stringify({ nowMs: model.nowMs, version: model.store.version, changes: model.takeChanges() })}\n`;
    states.push(byKey(replay(text)));
    ends.push(text.length);
  }
  fc.assert(
    fc.property(fc.integer({ min: ends[0] ?? 0, max: text.length }), (cut) => {
      const whole = ends.filter((end) => end <= cut).length - 1;
      assert.deepEqual(byKey(replay(text.slice(0, cut))), states[whole]);
    }),
  );
});

test("the events after any version, applied to the list of that version, give the present list", () => {
  fc.assert(
    fc.property(commands, fc.integer(), fc.double({ min: 0, max: 1, noNaN: true }), (history, seed, share) => {
      const model = newModel(2, { seed });
      const recorded = new Map<number, Map<string, Map<string, string>>>();
      for (const command of history) {
        recorded.set(model.store.version, lists(model));
        if (command.kind !== "reload") applyOrRefuse(model, command);
      }
      recorded.set(model.store.version, lists(model));
      const versions = [...recorded.keys()];
      const version = versions[Math.min(versions.length - 1, Math.floor(share * versions.length))] ?? 0;
      for (const resource of RESOURCE_KINDS.keys()) {
        const past = model.store.history.objectsAt(resource, version, model.store.objects(resource));
        assert.deepEqual(versionsOf(past ?? []), recorded.get(version)?.get(resource));
        const replayed = new Map((past ?? []).map((object) => [keyOf(object.metadata), object]));
        for (const event of model.store.history.after(version) ?? []) {
          if (event.resource !== resource) continue;
          if (event.removed) replayed.delete(keyOf(event.object.metadata));
          else replayed.set(keyOf(event.object.metadata), event.object);
        }
        assert.deepEqual(versionsOf(replayed.values()), versionsOf(model.store.objects(resource)));
      }
    }),
    { numRuns: 100 },
  );
});

test("a version that is too old is refused, never answered in part", () => {
  const model = newModel(0, { historyMax: 5 });
  const start = model.store.version;
  for (let round = 0; round < 30; round += 1) {
    create(model, "configmaps", "default", { metadata: { name: `c${round}` } });
    const { history, version } = model.store;
    for (let since = start; since <= version; since += 1) {
      const events = history.after(since);
      assert.equal(events === null, since < history.floor);
      if (events !== null) assert.equal(events.length, version - since);
    }
    assert.ok(version - history.floor >= Math.min(5, round + 1));
  }
  assert.equal(model.store.history.after(start), null);
});

function lists(model: SimModel): Map<string, Map<string, string>> {
  return new Map([...RESOURCE_KINDS.keys()].map((resource) => [resource, versionsOf(model.store.objects(resource))]));
}

function versionsOf(objects: Iterable<KubeObject>): Map<string, string> {
  return new Map([...objects].map(({ metadata }) => [keyOf(metadata), metadata.resourceVersion] as const).sort());
}

test("one advance over a long time and many short ones lead to the same state", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 997 }), { minLength: 1, maxLength: 30 }), (steps) => {
      const [once, often] = [newModel(2), newModel(2)];
      for (const model of [once, often]) {
        for (const index of [0, 1, 2, 3]) {
          const sim = { run: `${index * 700 + 300}ms`, "exit-code": "1" };
          const spec = { restartPolicy: index % 2 === 0 ? "OnFailure" : "Never" };
          create(model, "pods", "default", podManifest(`p${index}`, { gpus: 5, sim, spec }));
        }
      }
      for (const step of steps) often.advance(often.nowMs + step);
      once.advance(often.nowMs);
      assert.deepEqual(once.snapshot(), often.snapshot());
    }),
    { numRuns: 50 },
  );
});
