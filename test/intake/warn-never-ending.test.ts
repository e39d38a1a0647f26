import assert from "node:assert/strict";
import { test } from "node:test";
import type { SentRunPolicy, SentSpec } from "../../src/core/job/request/sent.ts";
import { warnNeverEnding } from "../../src/intake/warn-never-ending.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const METADATA = { namespace: "team", name: "a", generateName: "", labels: {}, annotations: {} };

type Case = { readonly kind: string; readonly roles: SentSpec["replicaSpecs"]; readonly runPolicy?: SentRunPolicy };

const cases: Record<string, Case & { readonly warned: string | null }> = {
  "an MPIJob without a policy": { kind: "MPIJob", roles: { Launcher: {}, Worker: {} }, warned: "Worker" },
  "a TFJob with None": {
    kind: "TFJob",
    roles: { chief: {}, ps: { replicas: 2 } },
    runPolicy: { cleanPodPolicy: "None" },
    warned: "PS",
  },
  "a TFJob with Running": {
    kind: "TFJob",
    roles: { Chief: {}, PS: {} },
    runPolicy: { cleanPodPolicy: "Running" },
    warned: null,
  },
  "a TFJob with 0 parameter servers": { kind: "TFJob", roles: { Chief: {}, PS: { replicas: 0 } }, warned: null },
  "a TFJob of workers": { kind: "TFJob", roles: { Worker: {} }, warned: null },
  "a PyTorchJob": { kind: "PyTorchJob", roles: { Master: {}, Worker: {} }, warned: null },
  "a kind that nobody knows": { kind: "Nope", roles: { PS: {} }, warned: null },
};
for (const [name, { kind, roles, runPolicy, warned }] of Object.entries(cases)) {
  test(`pods that never end by themselves outlive their job: ${name}`, () => {
    const sent = {
      ...METADATA,
      spec: { kind, replicaSpecs: roles, ...(runPolicy === undefined ? {} : { runPolicy }) },
    };
    const notes = warnNeverEnding(sent, OWN_KINDS);
    assert.equal(notes.length, warned === null ? 0 : 1);
    for (const { field, message } of notes) {
      assert.equal(field, "job.spec.run_policy.clean_pod_policy");
      assert.match(message, new RegExp(`^None keeps the ${warned} pods after the job has ended: .* Set Running`));
    }
  });
}
