import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { OWN_RULES } from "../../src/core/pods/policy/own-rules.ts";
import { judgeLevel } from "../../src/core/pods/policy/pod-policy.ts";
import { type JsonObject, objectAt } from "../../src/runtime/json.ts";
import { CONTROL_CASES, type ControlCase, compliantPod } from "../core/pods/policy/pod-policy-cases.ts";
import { waitUntil } from "../support/bounded.ts";
import { controlPlaneBuilt } from "./build.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";

const LEVELS = ["baseline", "restricted"] as const;
type Level = (typeof LEVELS)[number];

const OWN: ReadonlySet<string> = new Set(OWN_RULES.map(({ id }) => id));
/** Fewer verdicts would mean that the server refused most pods for other reasons. */
const VERDICTS_MIN = 150;

suite("levels of pod security on a real API server", { skip: !controlPlaneBuilt() }, () => {
  let plane: ControlPlane;

  before(async () => {
    plane = await startControlPlane();
    for (const level of LEVELS) {
      const labels = { "pod-security.kubernetes.io/enforce": level };
      const body = { apiVersion: "v1", kind: "Namespace", metadata: { name: level, labels } };
      const made = await plane.client.request({ method: "POST", path: "/api/v1/namespaces", body });
      assert.equal(made.kind, "ok");
    }
  });

  after(() => plane.stop());

  /** Whether the server's own controls allow a pod. Null: it refuses the pod for another reason. */
  async function isAllowed(template: JsonObject, level: Level): Promise<boolean | null> {
    // No pod can be created with ephemeral containers.
    const { ephemeralContainers: _ephemeral, ...spec } = objectAt(template, "spec");
    const metadata = { name: "pod", annotations: objectAt(objectAt(template, "metadata"), "annotations") };
    const path = `/api/v1/namespaces/${level}/pods`;
    const body = { apiVersion: "v1", kind: "Pod", metadata, spec };
    const made = await plane.client.request({ method: "POST", path, query: { dryRun: "All" }, body });
    if (made.kind === "ok") return true;
    return made.message.includes("violates PodSecurity") ? false : null;
  }

  function isTaken(template: JsonObject, level: Level): boolean {
    const { ephemeralContainers: _ephemeral, ...spec } = objectAt(template, "spec");
    const sent = { ...template, spec };
    const found = judgeLevel({ sent, built: sent }, { level, allow: [], warn: [] });
    return found.every(({ control }) => OWN.has(control));
  }

  test("the server takes and refuses the pods of the cases as the pod policy does", async () => {
    let verdicts = 0;
    for (const level of LEVELS) {
      const isReady = async () => (await isAllowed(compliantPod(), level)) === true;
      await waitUntil(`namespace ${level} has the account that its pods need`, isReady);
    }
    for (const [id, { fail, pass }] of Object.entries<ControlCase>(CONTROL_CASES)) {
      const failing = Object.entries(fail).map(([name, { pod }]) => [name, pod] as const);
      for (const [name, pod] of [...failing, ...Object.entries(pass)]) {
        // The server drops a type of volume that it does not know, and makes an emptyDir instead.
        if (name.includes("somethingNew")) continue;
        for (const level of LEVELS) {
          const allowed = await isAllowed(pod, level);
          if (allowed === null) continue;
          verdicts++;
          assert.equal(isTaken(pod, level), allowed, `${id}, ${name}, at level ${level}`);
        }
      }
    }
    assert.ok(verdicts >= VERDICTS_MIN, `only ${verdicts} verdicts`);
  });
});
