/** Headers and tokens that nobody has issued: each is UNAUTHENTICATED, reaches no handler, and is shown nowhere. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import fc from "fast-check";
import { createAuthenticate } from "../../src/access/authenticate.ts";
import { issuerKeys } from "../../src/access/issuer-keys.ts";
import { oidcVerifier } from "../../src/access/oidc.ts";
import type { JobReads } from "../../src/api/ports.ts";
import { NO_AUTHENTICATION } from "../../src/core/access/authentication-settings.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { signingKey, TestIssuer } from "../support/issuer.ts";
import { memoryRobots } from "../support/memory-robots.ts";
import { startFixture } from "./fixture.ts";
import { MemoryStore } from "./memory-store.ts";

const printable = fc.stringMatching(/^[\x20-\x7e]{0,64}$/);

/** A change of a token: a character, a cut, a part of another token, a part again. */
const change = fc.oneof(
  fc.record({ kind: fc.constant("replace" as const), at: fc.nat(), by: fc.stringMatching(/^[A-Za-z0-9_-]$/) }),
  fc.record({ kind: fc.constant("cut" as const), at: fc.nat(), by: fc.constant("") }),
  fc.record({ kind: fc.constant("swap" as const), at: fc.nat({ max: 2 }), by: fc.constant("") }),
  fc.record({ kind: fc.constant("double" as const), at: fc.nat({ max: 2 }), by: fc.constant("") }),
);

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

function changed(token: string, other: string, { kind, at, by }: Change): string {
  const parts = token.split(".");
  const place = at % token.length;
  switch (kind) {
    case "replace":
      return token.slice(0, place) + by + token.slice(place + 1);
    case "cut":
      return token.slice(0, place);
    case "swap":
      return parts
        .map((part, index) => (index === at % parts.length ? (other.split(".")[index] ?? "") : part))
        .join(".");
    case "double":
      return [...parts, parts[at % parts.length] ?? ""].join(".");
  }
}

/** True also for a signature whose last character has other unused bits: it is the same signature. */
function isSame(one: string, other: string): boolean {
  const bytesOf = (token: string) => Buffer.from(token.slice(token.lastIndexOf(".") + 1), "base64url");
  const [head, otherHead] = [one, other].map((token) => token.slice(0, token.lastIndexOf(".") + 1));
  return one === other || (head !== "" && head === otherHead && bytesOf(one).equals(bytesOf(other)));
}

test("no header but that of an issued token is let in", async (t) => {
  const issuer = await TestIssuer.start(await signingKey("one", "ES256"));
  t.after(() => issuer.close());
  const clock = systemClock();
  const robots = memoryRobots(clock);
  const one = {
    issuer: issuer.url,
    audiences: ["gangway"],
    subjectClaim: "sub",
    subjectPrefix: "a:",
    groupsClaim: null,
  };
  const keys = issuerKeys({ issuer: issuer.url, ca: null, clock, onError: (error) => assert.fail(String(error)) });
  const reviewToken = async () => ({ kind: "unknown" }) as const;
  const authenticate = createAuthenticate(
    { clock, verifyToken: oidcVerifier(() => keys, clock), verifyRobot: robots.verify, reviewToken },
    {
      ...NO_AUTHENTICATION,
      issuers: [{ ...one, groupsPrefix: "a:", caFile: null }],
      kubernetes: { kubeconfig: null, audience: "gangway" },
      robots: true,
      certificates: false,
    },
  );
  const store = new MemoryStore();
  const handled: unknown[] = [];
  const listJobs: JobReads["listJobs"] = (query) => {
    handled.push(query);
    return store.reads.listJobs(query);
  };
  const reads = { ...store.reads, listJobs };
  const { client, internal } = await startFixture(t, { authenticate, robots, reads });
  const asIs = (bytes: Buffer) => bytes;
  const answerTo = (values: readonly string[]) =>
    new Promise<{ readonly code: string; readonly text: string }>((resolve) => {
      const header = new Metadata();
      for (const value of values) header.add("authorization", value);
      const path = "/gangway.v1.JobService/ListJobs";
      client.makeUnaryRequest(path, asIs, asIs, Buffer.alloc(0), header, (error: ServiceError | null) =>
        resolve({ code: status[error?.code ?? status.OK] ?? "", text: `${error?.details}${error?.metadata.toJSON()}` }),
      );
    });
  const made = await robots.make({
    name: "ci",
    owner: "ann",
    scope: { kind: "installation", name: "" },
    ttlMs: 3_600_000,
    ownedMax: null,
  });
  const robot = made.kind === "made" ? made.secret : "";
  const [good, other] = [await issuer.sign({ sub: "a" }), await issuer.sign({ sub: "b", aud: "elsewhere" })];
  const account = await issuer.sign({ iss: "https://kubernetes", sub: "system:serviceaccount:a:b" });
  for (const token of [good, robot]) assert.equal((await answerTo([`Bearer ${token}`])).code, "OK");
  handled.length = 0;
  const token = fc.oneof(
    fc.tuple(fc.constantFrom(good, robot, account), change).map(([from, how]) => changed(from, other, how)),
    fc.constantFrom(other, account),
    fc.stringMatching(/^gwt_[\w-]{40,46}$/),
  );
  const header = fc.oneof(
    token.map((text) => [`Bearer ${text}`]),
    token.map((text) => [`Basic ${text}`]),
    token.map((text) => [text]),
    printable.map((text) => [text]),
    printable.map((text) => [`Bearer ${text}`]),
  );
  const property = fc.asyncProperty(header, async (values) => {
    const shown = /^bearer +(\S+)$/i.exec(values[0] ?? "")?.[1] ?? "";
    fc.pre(![good, robot].some((known) => isSame(known, shown)));
    const { code, text } = await answerTo(values);
    assert.equal(code, "UNAUTHENTICATED", JSON.stringify(values));
    for (const part of values.flatMap((value) => value.split(/[ .]/))) {
      assert.ok(part.length < 12 || !text.includes(part), `the answer shows ${part}`);
    }
  });
  await fc.assert(property, { numRuns: 600 });
  assert.deepEqual([handled, internal], [[], []]);
});
