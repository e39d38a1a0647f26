/** Texts of others are read in linear time. Each text here would take minutes or more in quadratic time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toStandardPath } from "../../../src/cli/output/standard-path.ts";
import { withoutHiddenClusters } from "../../../src/core/admin/hidden-clusters.ts";
import { recordedWithoutClusters } from "../../../src/core/plan/explain/hidden-clusters.ts";
import { withoutNames } from "../../../src/core/plan/explain/hidden-names.ts";
import { checkTemplate } from "../../../src/core/pods/judge/validate-template.ts";
import { parseQuantity } from "../../../src/core/pods/quantity.ts";
import { readRefusal } from "../../../src/core/pods/read/refusal.ts";
import { WHOLE_TEXTS } from "../../../src/core/pods/text-maker.ts";
import { checkPlaceholders } from "../../../src/core/pods/validate-placeholders.ts";
import { placesOf } from "../../../src/core/pods/variables.ts";
import { checkSpec } from "../../../src/intake/check-spec.ts";
import { parseDurationMs } from "../../../src/runtime/duration.ts";
import { certificatesIn, splitOutside, withoutTrailing } from "../../../src/runtime/scan-text.ts";
import { thrownText } from "../../../src/runtime/thrown-text.ts";
import { OWN_KINDS } from "../../support/kinds.ts";

const MANY = 300_000;
const none = () => false;
const SPEC = { spec: { containers: [{ name: "a", image: "b" }] } };

const cases: Readonly<Record<string, () => void>> = {
  "the refusal of a cluster": () => {
    for (const words of ["exceeded quota: requested: , used: ", "requested: , used: , used: ", "exceeded quota: "]) {
      const message = `exceeded quota: ${words.repeat(MANY)}`;
      assert.deepEqual(readRefusal({ reason: "Forbidden", message }), { kind: "quota", ceilings: {} });
    }
  },
  "slashes of an output prefix": () => {
    const annotations = { "gangway.dev/outputs": `s3://a${"/".repeat(MANY)}b${"/".repeat(MANY)}` };
    const places = placesOf({ metadata: { annotations } }, { variables: { PerRetryUniqueKey: "k" } }, WHOLE_TEXTS);
    assert.equal(places["RawOutputDataPrefix"], `s3://a${"/".repeat(MANY)}b/k`);
  },
  "placeholders that are not closed": () => {
    const args = ["{{.a.".repeat(MANY)];
    assert.deepEqual(checkPlaceholders({ spec: { containers: [{ name: "a", args }] } }, {}).warnings, []);
  },
  "unknown fields, of which a few get help": () => {
    const unknown = Object.fromEntries(Array.from({ length: 40_000 }, (_, at) => [`restartPolic${at}`, 1]));
    const { warnings } = checkTemplate({ spec: { ...SPEC.spec, ...unknown } });
    assert.equal(warnings.filter(({ message }) => message.includes("did you mean")).length, 10);
  },
  "unknown placeholders, of which a few get help": () => {
    const args = Array.from({ length: 40_000 }, () => "{{ .JobNam }}");
    const { warnings } = checkPlaceholders({ spec: { containers: [{ name: "a", args }] } }, {});
    assert.equal(warnings.filter(({ message }) => message.includes("did you mean")).length, 10);
  },
  "wrong replica types": () => {
    const names = Array.from({ length: 40_000 }, (_, at) => `!${at}.replicas`);
    const replicaSpecs = Object.fromEntries(names.map((name) => [name, { replicas: 1, template: SPEC }]));
    const kind = OWN_KINDS.kindOf("TFJob")?.name ?? "";
    const sent = { namespace: "a", name: "b", generateName: "", labels: {}, annotations: {} };
    const notes = checkSpec({ ...sent, spec: { kind, replicaSpecs } }, OWN_KINDS);
    assert.ok(notes.length > 1);
  },
  "names of jobs in the words of a refusal": () => {
    withoutNames(`preempted for it have ended: ${"a".repeat(MANY)}`, none);
    withoutNames(", and keeps 1 for nominees".repeat(MANY), none);
  },
  "names of clusters in the words of a refusal": () => {
    recordedWithoutClusters(
      `no node of cluster a can ever take a ${"no node of cluster a can ever take a ".repeat(MANY)}`,
      none,
    );
    recordedWithoutClusters("is kept for the reservation of  on cluster ".repeat(MANY), none);
    withoutHiddenClusters("in use by cluster ".repeat(MANY), none);
  },
  "an error with a long message": () => {
    assert.match(thrownText(new TypeError("file://".repeat(MANY))), /\(long-texts\.test\.ts:\d+:\d+\)$/);
  },
  "a path of the command line": () => {
    assert.throws(() => toStandardPath(`[?(${"'\\".repeat(MANY)}`), /is not a path/);
  },
  digits: () => {
    assert.equal(parseDurationMs("1".repeat(MANY)), null);
    assert.equal(parseQuantity("1".repeat(MANY)), null);
  },
  "certificates that are not closed": () => {
    assert.equal(certificatesIn("-----BEGIN CERTIFICATE-----".repeat(MANY)).length, MANY);
  },
  "commas and brackets": () => {
    assert.equal(splitOutside(",[".repeat(MANY), { open: "[", close: "]" }).length, MANY + 1);
    assert.equal(splitOutside(",".repeat(MANY), { open: "(", close: ")" }).length, MANY + 1);
    assert.equal(withoutTrailing(`${"/".repeat(MANY)}a`, "/").length, MANY + 1);
  },
};
for (const [name, run] of Object.entries(cases)) test(name, run);
