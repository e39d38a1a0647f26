import assert from "node:assert/strict";
import { test } from "node:test";
import { untilRefused } from "../../src/api/rpc/until-refused.ts";
import { type Authentication, type Identity, refusal } from "../../src/core/access/identity.ts";

const ANN: Identity = { subject: "ann", groups: ["a", "b"], method: "oidc", issuer: "i", expiresAtMs: null };
const known = (members: Partial<Identity>): Authentication => ({ kind: "identity", identity: { ...ANN, ...members } });

/** What each look finds. Null: the issuer is away. The stream is over after the last one. */
const LOOKS: Readonly<Record<string, readonly [readonly (Authentication | null)[], string | null]>> = {
  "a stream continues while its caller stays the same": [[known({}), known({ expiresAtMs: 7 })], null],
  "a stream continues if the issuer names the groups in another order": [[known({ groups: ["b", "a", "a"] })], null],
  "a stream continues while the issuer is away": [[null, known({}), null], null],
  "a stream ends if a group is gone": [[known({}), known({ groups: ["a"] })], "the caller's groups have changed"],
  "a stream ends if another group comes": [[known({ groups: ["a", "c"] })], "the caller's groups have changed"],
  "a stream ends with another caller": [[known({ subject: "bob" })], "the credential is that of another caller now"],
  "a stream ends with its credential": [[null, refusal("it has ended")], "it has ended"],
};
for (const [name, [answers, why]] of Object.entries(LOOKS)) {
  test(name, async () => {
    const over = new AbortController();
    const left = [...answers];
    const authenticate = async () => {
      const answer = left.shift();
      if (left.length === 0) over.abort("over");
      if (answer === null || answer === undefined) throw new Error("away");
      return answer;
    };
    const caller = { identity: ANN, credentials: { authorization: [], certificate: null } };
    const clock = { sleep: async () => {} };
    assert.equal(await untilRefused(caller, { authenticate, clock }, over.signal), why);
    assert.deepEqual(left, []);
  });
}
