import { test } from "node:test";
import fc from "fast-check";
import { compactNode, keepConfigMap, keepGroup, keepObject, keepPod } from "../../src/adapters/cluster/kept-objects.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import { summarize } from "../../src/core/plan/facts/read-capacity.ts";
import type { JsonObject } from "../../src/runtime/json.ts";

const MEMBERS = [
  ...["metadata", "spec", "status", "name", "namespace", "uid", "labels", "annotations", "ownerReferences", "kind"],
  ...["containers", "initContainers", "resources", "requests", "limits", "cpu", "nodeName", "tolerations", "affinity"],
  ...["conditions", "type", "phase", "containerStatuses", "state", "terminated", "waiting", "reason", "exitCode"],
  ...["deletionTimestamp", "allocatable", "capacity", "taints", "data", LABEL.installation, LABEL.jobUid],
];
const TEXTS = ["1", "-1", "1e99", "9".repeat(100_000), "ours", "Running", "Failed", "\0", "", "ConfigMap", "cpu"];

const { object } = fc.letrec<{ value: unknown; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { depthSize: "medium" },
    fc.constantFrom<unknown>(...TEXTS, null, true, -1, 1e308),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("object"),
  ),
  object: fc.dictionary(fc.constantFrom(...MEMBERS), tie("value"), { maxKeys: 6 }) as fc.Arbitrary<JsonObject>,
}));

test("no object of a cluster is too odd to be kept and counted", () => {
  fc.assert(
    fc.property(fc.array(object, { maxLength: 3 }), fc.array(object, { maxLength: 3 }), (pods, nodes) => {
      for (const one of [...pods, ...nodes]) {
        keepObject(one, "ours");
        keepConfigMap(one, "ours");
        keepGroup(one, "ours");
      }
      summarize(
        nodes.map(compactNode),
        pods.map((pod) => keepPod(pod, "ours").compact),
      );
    }),
    { numRuns: 1_000 },
  );
});
