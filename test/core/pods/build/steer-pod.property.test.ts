import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { steeredTo } from "../../../../src/core/pods/build/steer-pod.ts";
import { type NodeFacts, nodeAllows } from "../../../../src/core/pods/node-match.ts";
import { arrayAt, type JsonObject, numberAt, objectAt } from "../../../../src/runtime/json.ts";

const NODES: readonly NodeFacts[] = ["n0", "n1", "n2", "n3"].flatMap((name, at) => {
  return [{ name, labels: { zone: at % 2 === 0 ? "a" : "b" }, taints: [], unschedulable: false }];
});

const zone = (values: readonly string[]) => ({ matchExpressions: [{ key: "zone", operator: "In", values }] });
const term = fc.oneof(
  fc.constant({}),
  fc.subarray(["a", "b"], { minLength: 1 }).map(zone),
  fc.constantFrom("n0", "n3").map((name) => {
    return { matchFields: [{ key: "metadata.name", operator: "In", values: [name] }] };
  }),
);
const preferred = fc.record({ weight: fc.integer({ min: 1, max: 100 }), preference: term });

const podSpec: fc.Arbitrary<JsonObject> = fc
  .record({
    terms: fc.option(fc.array(term, { minLength: 1, maxLength: 3 }), { nil: undefined }),
    wishes: fc.option(fc.array(preferred, { maxLength: 20 }), { nil: undefined }),
  })
  .map(({ terms, wishes }): JsonObject => {
    const required =
      terms === undefined ? {} : { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
    const wished = wishes === undefined ? {} : { preferredDuringSchedulingIgnoredDuringExecution: wishes };
    return { affinity: { nodeAffinity: { ...required, ...wished } } };
  });

function nodeAffinityOf(spec: JsonObject): JsonObject {
  return objectAt(objectAt(spec, "affinity"), "nodeAffinity");
}

test("a steered pod may run on those of its nodes that its template allows, and on no other", () => {
  fc.assert(
    fc.property(podSpec, fc.constantFrom("n0", "n1"), fc.subarray(["n2", "n3"]), (spec, node, others) => {
      const steered = { ...spec, ...steeredTo(spec, { node, others }) };
      for (const facts of NODES) {
        const isAllowed = [node, ...others].includes(facts.name) && nodeAllows(spec, facts);
        assert.equal(nodeAllows(steered, facts), isAllowed, facts.name);
      }
    }),
  );
});

test("the planned node weighs 100, and what the template prefers at most 10 together", () => {
  fc.assert(
    fc.property(podSpec, (spec) => {
      const before = arrayAt(nodeAffinityOf(spec), "preferredDuringSchedulingIgnoredDuringExecution");
      const steered = steeredTo(spec, { node: "n1", others: [] });
      const after = arrayAt(nodeAffinityOf(steered), "preferredDuringSchedulingIgnoredDuringExecution");
      const weights = after.map((one) => numberAt(one, "weight") ?? 0);
      assert.equal(weights.pop(), 100);
      assert.equal(weights.length, Math.min(10, before.length));
      assert.ok(weights.every((weight) => weight >= 1 && Number.isInteger(weight)));
      const sum = weights.reduce((total, weight) => total + weight, 0);
      assert.ok(sum <= 10, `${sum}`);
    }),
  );
});

test("many alternatives of a template leave the planned node alone", () => {
  const terms = Array.from({ length: 9 }, (_, at) => zone([`z${at}`]));
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
  const others = ["b", "c", "d", "e", "f", "g", "h"];
  const steered = steeredTo({ affinity: { nodeAffinity: required } }, { node: "a", others });
  const made = objectAt(nodeAffinityOf(steered), "requiredDuringSchedulingIgnoredDuringExecution");
  assert.equal(arrayAt(made, "nodeSelectorTerms").length, 9);
});

test("long alternatives of a template leave the planned node alone", () => {
  const required = {
    requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [zone(["z".repeat(40_000)])] },
  };
  const steered = steeredTo({ affinity: { nodeAffinity: required } }, { node: "a", others: ["b"] });
  const made = objectAt(nodeAffinityOf(steered), "requiredDuringSchedulingIgnoredDuringExecution");
  assert.equal(arrayAt(made, "nodeSelectorTerms").length, 1);
});

test("a constraint that selects no pod turns the default spread off, and the template's own ones stay", () => {
  const [added] = arrayAt(steeredTo({}, { node: "a", others: [] }), "topologySpreadConstraints");
  assert.deepEqual(added, { maxSkew: 1, topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "ScheduleAnyway" });
  const own = { topologySpreadConstraints: [{ maxSkew: 2 }] };
  assert.equal("topologySpreadConstraints" in steeredTo(own, { node: "a", others: [] }), false);
});
