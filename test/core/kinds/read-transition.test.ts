import assert from "node:assert/strict";
import { test } from "node:test";
import { readTransition } from "../../../src/core/kinds/read-transition.ts";

const task = {
  logs: [{ name: "l", uri: "u" }],
  externalResources: [
    {
      externalId: "e",
      index: 4,
      retryAttempt: 2,
      phase: "RUNNING",
      cacheStatus: "HIT",
      logs: [{ name: "l", uri: "u" }],
    },
  ],
  occurredAtMs: 5,
  reportedAtMs: 6,
  additionalReasons: [{ reason: "r", occurredAtMs: 7 }],
  customInfo: { rows: 1 },
};
const failure = { code: "Lost", kind: "SYSTEM", message: "m" };
/** Every member that `handle` may return. */
const full = {
  info: { phase: "RETRYABLE_FAILURE", version: 3, reason: "r", task, failure, cleanupOnFailure: true },
  state: { version: 2, value: { at: 1 } },
  outputs: { rows: 1, table: "t" },
  recheckAfterMs: 9,
};

const read = (value: unknown) => readTransition(value);
const messageOf = (value: unknown) => {
  const outcome = read(value);
  return outcome.kind === "wrong" ? outcome.message : null;
};

test("an answer with every member is read as it is", () => {
  const { phase, version, reason } = full.info;
  const rest = { cleanup: true, state: full.state, outputs: full.outputs, recheckAfterMs: 9 };
  const transition = { phase, version, reason, task, failure, ...rest };
  assert.deepEqual(read(full), { kind: "read", transition });
});

test("omitted members have defaults", () => {
  const none = { logs: [], externalResources: [], occurredAtMs: null, reportedAtMs: null };
  const empty = { ...none, additionalReasons: [], customInfo: null };
  const rest = {
    version: 0,
    reason: "",
    task: empty,
    failure: null,
    cleanup: false,
    state: null,
    outputs: null,
    recheckAfterMs: 5_000,
  };
  const running = { kind: "read", transition: { phase: "RUNNING", ...rest } };
  assert.deepEqual(read({ info: { phase: "RUNNING" } }), running);
  const nulls = { phase: "RUNNING", version: null, reason: null, task: null };
  assert.deepEqual(read({ info: nulls, recheckAfterMs: null }), running);
  const ignored = { phase: "RUNNING", failure: { code: "?" }, cleanupOnFailure: true };
  assert.deepEqual(read({ info: ignored }), running, "only a failure has a failure");
  const stateless = read({ info: { phase: "RUNNING" }, state: { value: null } });
  assert.deepEqual(stateless.kind === "read" && stateless.transition.state, { version: 0, value: null });
  const users = read({ info: { phase: "PERMANENT_FAILURE", failure: { code: "a" } } });
  assert.deepEqual(users.kind === "read" && users.transition.failure, { code: "a", kind: "USER", message: "" });
  const resource = read({
    info: { phase: "RUNNING", task: { externalResources: [{ phase: null }, { cacheStatus: null }] } },
  });
  const bare = { externalId: "", retryAttempt: 0, phase: null, cacheStatus: null, logs: [] };
  assert.deepEqual(resource.kind === "read" && resource.transition.task.externalResources, [
    { ...bare, index: 0 },
    { ...bare, index: 1 },
  ]);
});

/** The path of each member of a value, as messages name it. Members of free objects have none. */
function pathsOf(value: unknown, path = ""): readonly string[] {
  if (["state.value", "info.task.customInfo", "outputs"].includes(path)) return [path];
  if (Array.isArray(value)) return [path, ...value.flatMap((one, at) => pathsOf(one, `${path}[${at}]`))];
  if (typeof value !== "object" || value === null) return [path];
  const inner = Object.entries(value).flatMap(([name, one]) => pathsOf(one, path === "" ? name : `${path}.${name}`));
  return path === "" ? inner : [path, ...inner];
}

function replaced(path: string, by: unknown): unknown {
  const copy = structuredClone(full) as never;
  const steps = path.split(/[.[\]]+/).filter((step) => step !== "");
  const last = steps.pop() ?? "";
  const holder = steps.reduce<Record<string, never>>((at, step) => at[step] as never, copy);
  holder[last] = by as never;
  return copy;
}

for (const path of pathsOf(full).filter((one) => one !== "info.cleanupOnFailure")) {
  test(`a wrong value of ${path} is named by its path`, () => {
    const isText = /(name|uri|reason|externalId|message|code)$/.test(path);
    for (const wrong of isText ? [1, {}] : ["?", -1, 1.5]) {
      assert.ok(messageOf(replaced(path, wrong))?.startsWith(`${path} must be `), `${JSON.stringify(wrong)}`);
    }
  });
}

const wrong: Record<string, { value: unknown; says: RegExp }> = {
  nothing: { value: undefined, says: /^handle returned nothing$/ },
  "a function": { value: () => 1, says: /^handle returned nothing$/ },
  "a list": { value: [], says: /^the result of handle must be an object$/ },
  "no phase": { value: { info: {} }, says: /^info\.phase must be one of / },
  "a bare state": { value: { ...full, rows: 1 }, says: /^the result of handle has rows; it may have info, state, / },
  "a misspelt member of info": {
    value: replaced("info.phases", 1),
    says: /^info has phases; it may have phase, version, /,
  },
  "a long unknown member": { value: { ["x".repeat(200)]: 1 }, says: /has x{100}; it may have/ },
  "a code that starts with a digit": {
    value: replaced("info.failure.code", "1a"),
    says: /^info\.failure\.code must be a letter/,
  },
  "a code with a space": { value: replaced("info.failure.code", "a b"), says: /^info\.failure\.code must be a letter/ },
  "a code that is too long": {
    value: replaced("info.failure.code", "a".repeat(129)),
    says: /^info\.failure\.code must be/,
  },
  "no code": { value: replaced("info.failure.code", null), says: /^info\.failure\.code must be a letter/ },
  "a number that is too large": {
    value: replaced("recheckAfterMs", 3_600_001),
    says: /^recheckAfterMs must be .* 3600000$/,
  },
  "too many items": {
    value: replaced(
      "info.task.logs",
      Array.from({ length: 1_001 }, () => ({})),
    ),
    says: /^info\.task\.logs has 1001 items, more than 1000$/,
  },
  "too much JSON": {
    value: replaced("state.value", { text: "x".repeat(65_536) }),
    says: /^handle returned \d+ characters/,
  },
};
for (const [name, { value, says }] of Object.entries(wrong)) {
  test(`an answer with ${name} is refused`, () => assert.match(messageOf(value) ?? "", says));
}

test("the largest values are accepted, and text for people is cut and cleaned", () => {
  assert.equal(messageOf(replaced("recheckAfterMs", 3_600_000)), null);
  assert.equal(messageOf(replaced("info.failure.code", `a${"b".repeat(127)}`)), null);
  assert.equal(
    messageOf(
      replaced(
        "info.task.logs",
        Array.from({ length: 1_000 }, () => ({})),
      ),
    ),
    null,
  );
  const outcome = read(replaced("info.reason", `a\0\uD800${"b".repeat(5_000)}`));
  assert.ok(outcome.kind === "read");
  assert.equal(outcome.transition.reason, `a\uFFFD\uFFFD${"b".repeat(4_086)}…`);
});

test("outputs are as inputs may be, and a wrong one is named", () => {
  const outputs: readonly (readonly [given: unknown, message: string])[] = [
    [[], "outputs must be an object"],
    [
      { "1st": 1 },
      "outputs.1st must have a name of at most 63 characters: a letter or _, then letters, digits, _ and -",
    ],
    [
      { a: [1, null] },
      "outputs.a must be text, a number, true, false, a list or an object; null is not allowed, nor null in a list",
    ],
    [
      Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`v${at}`, at])),
      "outputs has 101 outputs: at most 100 are allowed",
    ],
  ];
  for (const [given, message] of outputs) {
    assert.equal(messageOf({ info: { phase: "RUNNING" }, outputs: given }), message);
  }
});
