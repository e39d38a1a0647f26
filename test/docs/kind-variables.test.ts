/** docs/pods.md names the variables that kinds give to their members. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newJob } from "../../src/intake/new-job.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { page } from "./pages.ts";

/** Kind specs that make a kind set everything that it can set. */
const KIND_SPECS: Readonly<Record<string, JsonObject>> = {
  PyTorchJob: {
    elasticPolicy: {
      maxReplicas: 2,
      rdzvId: "a",
      rdzvConf: [{ key: "a", value: "b" }],
      standalone: true,
      maxRestarts: 1,
    },
  },
};

test("every variable of every kind is listed with its kind", () => {
  const lines = page("docs/pods.md")
    .text.replaceAll(/\n {2}/g, " ")
    .split("\n");
  for (const kind of OWN_KINDS.all) {
    const listed = lines.find((line) => line.startsWith(`- \`${kind.name}\``)) ?? "";
    const missing = variablesOf(kind.name).filter((name) => !listed.includes(`\`${name}\``));
    assert.deepEqual(missing, [], kind.name);
  }
});

/** The names of the variables that a kind sets in place of those of a template. */
function variablesOf(name: string): readonly string[] {
  const kind = OWN_KINDS.kindOf(name)!;
  const template = { spec: { containers: [{ name: kind.defaultContainer ?? "main", image: "i" }] } };
  const roles = (kind.roles ?? [{ name: "Worker" }]).map((role) => role.name);
  const replicaSpecs = Object.fromEntries(roles.map((role) => [role, { replicas: 1, template }]));
  const sent = { namespace: "n", name: "j", generateName: "", labels: {}, annotations: {} };
  const { spec } = newJob(
    { ...sent, spec: { kind: name, replicaSpecs, kindSpec: KIND_SPECS[name] ?? {} } },
    {
      kind,
      project: "p",
      namespaceQueue: null,
      priorityClass: null,
      uid: "u",
      name: "j",
      createdBy: "",
      templates: {},
      nowMs: 0,
    },
  );
  const members = Object.fromEntries(roles.map((role) => [role, 1]));
  const gang = { jobName: "j", jobUid: "u", namespace: "n", admission: 1, spec, members };
  const images = { clusterDomain: "", initImage: "", kubectlImage: "" };
  const specs = roles.map((role) => kind.clusterSpec({ ...gang, ...images, role, index: 0 }));
  return specs.flatMap(({ env }) => Object.values(env).flatMap((list) => list.map((one) => one.name)));
}
