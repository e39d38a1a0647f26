import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LABEL } from "../../../../src/core/job/labels.ts";
import { type ClaimVerdict, claimVerdict } from "../../../../src/core/reconcile/objects/claim.ts";

const SELECTOR = { job: "a", admission: "1" };
const claimant = (deleting: boolean) => ({ anchor: { uid: "anchor", deleting }, selector: SELECTOR });
const labels = fc.record(
  { job: fc.constantFrom("a", "b"), admission: fc.constantFrom("1", "2") },
  { requiredKeys: [] },
);
const objects = fc.record({
  name: fc.constant("o"),
  uid: fc.constant("u"),
  labels: labels as fc.Arbitrary<Record<string, string>>,
  controllerUid: fc.constantFrom(null, "anchor", "another"),
  deleting: fc.boolean(),
});
const matches = (found: Readonly<Record<string, string>>) => found["job"] === "a" && found["admission"] === "1";

test("an object with another controller or with another admission's labels is never adopted", () => {
  fc.assert(
    fc.property(objects, fc.boolean(), (object, deleting) => {
      const verdict = claimVerdict(object, claimant(deleting));
      if (object.controllerUid === "another") assert.equal(verdict, "leave");
      if (verdict === "owned") assert.ok(matches(object.labels) && object.controllerUid === "anchor");
      if (verdict === "adopt") assert.ok(matches(object.labels) && object.controllerUid === null && !object.deleting);
      if (verdict === "release") assert.ok(!matches(object.labels) && object.controllerUid === "anchor");
      if (deleting) assert.ok(verdict === "owned" || verdict === "leave", "an anchor on its way out changes nothing");
    }),
  );
});

test("an object of another fence is treated as one whose labels were changed; one without a fence is not", () => {
  const fenced = { ...claimant(false), fence: "5" };
  const cases: readonly (readonly [string | undefined, string | null, ClaimVerdict])[] = [
    ["5", null, "adopt"],
    ["5", "anchor", "owned"],
    ["6", null, "leave"],
    ["6", "anchor", "release"],
    [undefined, null, "adopt"],
    [undefined, "anchor", "owned"],
  ];
  for (const [fence, controllerUid, verdict] of cases) {
    const labels = { ...SELECTOR, ...(fence === undefined ? {} : { [LABEL.fence]: fence }) };
    assert.equal(claimVerdict({ name: "o", uid: "u", labels, controllerUid, deleting: false }, fenced), verdict);
  }
});

test("an adopted object is then owned, a released one is left alone, and a second claim changes nothing", () => {
  fc.assert(
    fc.property(objects, fc.boolean(), (object, deleting) => {
      const verdict = claimVerdict(object, claimant(deleting));
      const next = { adopt: "anchor", release: null, owned: object.controllerUid, leave: object.controllerUid };
      const again = claimVerdict({ ...object, controllerUid: next[verdict] }, claimant(deleting));
      const expected: Record<ClaimVerdict, ClaimVerdict> = {
        adopt: "owned",
        release: "leave",
        owned: "owned",
        leave: "leave",
      };
      assert.equal(again, expected[verdict]);
    }),
  );
});
