import assert from "node:assert/strict";
import { test } from "node:test";
import { eventsOfCall, metricsScope, platformFacts } from "../../../src/core/kinds/plugin-services.ts";
import { PLAIN_POD_CONFIG } from "../../../src/core/pods/pod-config.ts";

test("a call records at most 20 events, each with a word and a message", () => {
  const { recorder, events } = eventsOfCall();
  for (let at = 0; at < 20; at++) recorder.record({ reason: `R${at}`, message: "" });
  assert.throws(() => recorder.record({ reason: "R", message: "" }), /a call may record 20 events/);
  assert.equal(events.length, 20);
  const other = eventsOfCall().recorder;
  for (const reason of ["", "1a", "a b", "x".repeat(64)]) {
    assert.throws(() => other.record({ reason, message: "" }), /reason must be a letter, then up to 62 letters/);
  }
  assert.throws(() => other.record({ reason: "R", message: 1 as unknown as string }), /message must be text/);
});

test("what a plugin measures has a plain name, a short label, and an amount", () => {
  const seen: string[] = [];
  const metrics = metricsScope({
    counted: ({ name, label, by }) => void seen.push(`${name}/${label} +${by}`),
    timed: ({ name, label, tookMs }) => void seen.push(`${name}/${label} ${tookMs} ms`),
  });
  metrics.count("rows");
  metrics.count("rows", { by: 2.5, label: "team-a" });
  metrics.time("query", { tookMs: 7 });
  assert.deepEqual(seen, ["rows/ +1", "rows/team-a +2.5", "query/ 7 ms"]);
  for (const name of ["", "Rows", "rows-read", "r".repeat(64)]) {
    assert.throws(() => metrics.count(name), /a metric's name must be a small letter/);
  }
  assert.throws(() => metrics.count("rows", { label: "x".repeat(64) }), /label must be text of at most 63 characters/);
  for (const by of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => metrics.count("rows", { by }), /amount must be a number of at least 0/);
  }
  assert.equal(seen.length, 3);
});

test("a platform gives a namespace its own account and resources, else everybody's", () => {
  const config = {
    ...PLAIN_POD_CONFIG,
    serviceAccount: "everybody",
    defaultEnvVars: { REGION: "eu" },
    defaultPodSecurityContext: { runAsNonRoot: true },
    resources: { defaults: { cpu: "1" }, limits: {} },
    namespaces: { team: { serviceAccount: "team", resources: { defaults: {}, limits: { cpu: "4" } } } },
  };
  const common = { environment: { REGION: "eu" }, podSecurityContext: { runAsNonRoot: true }, securityContext: null };
  assert.deepEqual(platformFacts(config, "team"), {
    ...common,
    serviceAccount: "team",
    resources: { defaults: {}, limits: { cpu: "4" } },
  });
  assert.deepEqual(platformFacts(config, "other"), {
    ...common,
    serviceAccount: "everybody",
    resources: { defaults: { cpu: "1" }, limits: {} },
  });
  assert.deepEqual(platformFacts(PLAIN_POD_CONFIG, "other").resources, { defaults: {}, limits: {} });
});
