import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { allowanceText, readAllowance } from "../../../../src/core/pods/policy/allowances.ts";
import { POD_SECURITY_LEVELS, type PodSecurityLevel } from "../../../../src/core/pods/policy/control.ts";
import { CONTROLS, judgeLevel } from "../../../../src/core/pods/policy/pod-policy.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";
import { podTemplate } from "./pod-policy-arbitraries.ts";
import { CONTROL_CASES, type ControlCase, compliantPod } from "./pod-policy-cases.ts";

function judged(template: JsonObject, level: PodSecurityLevel, allow: readonly string[] = []) {
  return judgeLevel({ sent: template, built: template }, { level, allow, warn: [] });
}

test("the cases have every control of the table, and no other", () => {
  const ids = new Set(CONTROLS.map(({ id }) => id));
  assert.deepEqual(Object.keys(CONTROL_CASES).sort(), [...ids].sort());
});

/** The levels at which a control holds. */
function levelsOf(id: string): readonly PodSecurityLevel[] {
  const level = CONTROLS.find((control) => control.id === id)?.level;
  return level === "baseline" ? ["baseline", "restricted"] : ["restricted"];
}

for (const [id, { fail, pass }] of Object.entries<ControlCase>(CONTROL_CASES)) {
  for (const [name, { pod, path, allow }] of Object.entries(fail)) {
    test(`${id} refuses ${name}, at its path, until it is allowed`, () => {
      for (const level of levelsOf(id)) {
        const found = judged(pod, level).filter((finding) => finding.path === path);
        assert.deepEqual(
          found.map(({ needs }) => allowanceText(needs)),
          [allow],
          level,
        );
        assert.ok(found.every(({ what, severity }) => what !== "" && severity === "error"));
        assert.deepEqual(
          judged(pod, level, [allow]).filter((finding) => finding.path === path),
          [],
        );
      }
      const [first = "baseline"] = levelsOf(id);
      const own = judged(pod, first).filter(({ control }) => control === id);
      assert.deepEqual([...new Set(own.map((finding) => finding.path))], [path]);
      assert.deepEqual(judged(pod, "privileged"), []);
      if (first !== "restricted") return;
      assert.ok(judged(pod, "baseline").every(({ control }) => control !== id));
    });
  }
  for (const [name, pod] of Object.entries(pass)) {
    test(`${id} takes ${name}`, () => {
      for (const level of levelsOf(id)) {
        assert.deepEqual(
          judged(pod, level).filter(({ control }) => control === id),
          [],
        );
      }
    });
  }
}

test("a pod that says everything that the level restricted asks for passes at every level", () => {
  for (const level of POD_SECURITY_LEVELS) assert.deepEqual(judged(compliantPod(), level), []);
});

test("each level refuses what the level before it refuses", () => {
  fc.assert(
    fc.property(podTemplate, (template) => {
      const keys = (level: PodSecurityLevel) =>
        judged(template, level).map(({ path, needs }) => `${path} ${needs.kind}`);
      const [privileged, baseline, restricted] = POD_SECURITY_LEVELS.map(keys);
      assert.deepEqual(privileged, []);
      const all = new Set(restricted);
      assert.ok(baseline?.every((key) => all.has(key)));
    }),
  );
});

test("an allowance never refuses more, and lifts exactly what asks for it", () => {
  fc.assert(
    fc.property(
      podTemplate,
      fc.constantFrom("baseline" as const, "restricted" as const),
      fc.nat(),
      (template, level, at) => {
        const found = judged(template, level);
        const texts = found.map(({ needs }) => allowanceText(needs));
        const allow = texts[at % Math.max(1, texts.length)];
        if (allow === undefined) return;
        const left = judged(template, level, [allow]);
        const before = found.map((finding) => JSON.stringify(finding));
        assert.ok(left.every((finding) => before.includes(JSON.stringify(finding))));
        // A path that leads anywhere is lifted by no allowance.
        if (readAllowance(allow).kind === "read") assert.ok(texts.includes(allow) && left.length < found.length);
      },
    ),
  );
});

test("the judge of any JSON returns findings with paths, and never throws", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.jsonValue({ maxDepth: 4 }), (spec, container) => {
      for (const template of [{ spec }, { metadata: spec, spec: { containers: [container], volumes: [container] } }]) {
        const found = judged(template as JsonObject, "restricted");
        assert.ok(found.every(({ path, what }) => path !== "" && what !== ""));
      }
    }),
  );
});

test("a value that the template sets is judged as it was sent, whatever the platform makes of it", () => {
  const sent = { spec: { hostNetwork: true, containers: [{ name: "main", securityContext: { privileged: true } }] } };
  const built = {
    spec: { hostNetwork: false, containers: [{ name: "main", securityContext: { privileged: false } }] },
  };
  const paths = judgeLevel({ sent, built }, { level: "baseline", allow: [], warn: [] }).map(({ path }) => path);
  assert.deepEqual(paths, ["spec.hostNetwork", "spec.containers[0].securityContext.privileged"]);
});

test("a value that the level requires may come from the platform, whose own containers are not judged", () => {
  const { spec } = compliantPod() as { spec: JsonObject & { containers: JsonObject[] } };
  const sent = { spec: { containers: [{ name: "main", image: "i" }] } };
  const platform = [{ name: "sidecar", image: "p", securityContext: { privileged: true } }, ...spec.containers];
  const built = { spec: { ...spec, hostPID: true, containers: platform } };
  const policy = { level: "restricted", allow: [], warn: [] } as const;
  assert.deepEqual(judgeLevel({ sent, built }, policy), []);
  assert.notDeepEqual(judgeLevel({ sent, built: sent }, policy), []);
});

test("an allowance of the installation warns, and one of the namespace does not", () => {
  const pod = { spec: { volumes: [{ name: "v", hostPath: { path: "/dev/shm" } }] } };
  const policy = { level: "baseline", allow: [], warn: ["host-path=/"] } as const;
  const severities = (allow: readonly string[]) =>
    judgeLevel({ sent: pod, built: pod }, { ...policy, allow }).map(({ severity }) => severity);
  assert.deepEqual(severities([]), ["warning"]);
  assert.deepEqual(severities(["host-path=/dev/shm"]), []);
});
