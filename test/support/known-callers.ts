/** Callers of a test server that shows tokens of robots and of an issuer. */
import type { TestContext } from "node:test";
import { createAuthenticate } from "../../src/access/authenticate.ts";
import { issuerKeys } from "../../src/access/issuer-keys.ts";
import { oidcVerifier } from "../../src/access/oidc.ts";
import { NO_AUTHENTICATION } from "../../src/core/access/authentication-settings.ts";
import type { Authenticate } from "../../src/core/access/identity.ts";
import type { ReviewedToken } from "../../src/core/access/service-account.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { signingKey, TestIssuer } from "./issuer.ts";
import { memoryRobots } from "./memory-robots.ts";

export type KnownCaller = { readonly subject: string; readonly token: string };

/** `caller` returns a subject with its token; each method has subjects of its own. */
export async function knownCallers(t: Pick<TestContext, "after">) {
  const issuer = await TestIssuer.start(await signingKey("one", "ES256"));
  t.after(() => issuer.close());
  const clock = systemClock();
  const fail = (error: unknown) => {
    throw error;
  };
  const keys = issuerKeys({ issuer: issuer.url, ca: null, clock, onError: fail });
  const robots = memoryRobots();
  const settings = {
    issuer: issuer.url,
    audiences: ["gangway"],
    subjectClaim: "sub",
    subjectPrefix: "login:",
    groupsClaim: "groups",
    groupsPrefix: "login:",
    caFile: null,
  };
  /** The cluster that reviews tokens of service accounts knows these. */
  const accounts = new Map<string, string>();
  const reviewToken = async (token: string): Promise<ReviewedToken> => {
    const username = accounts.get(token);
    if (username === undefined) return { kind: "unknown" };
    return { kind: "known", username, groups: [], audiences: ["gangway"] };
  };
  const authenticate: Authenticate = createAuthenticate(
    { clock, verifyToken: oidcVerifier(() => keys, clock), verifyRobot: robots.verify, reviewToken },
    {
      ...NO_AUTHENTICATION,
      issuers: [settings],
      kubernetes: { kubeconfig: null, audience: "gangway" },
      robots: true,
      certificates: true,
    },
  );
  const caller = async (
    method: "robot" | "oidc" | "kubernetes",
    name: string,
    groups: readonly string[] = [],
  ): Promise<KnownCaller> => {
    if (method === "oidc") return { subject: `login:${name}`, token: await issuer.sign({ sub: name, groups }) };
    if (method === "kubernetes") {
      const subject = `system:serviceaccount:ci:${name}`;
      const token = await issuer.sign({ iss: "https://cluster.example", sub: subject });
      accounts.set(token, subject);
      return { subject, token };
    }
    const made = await robots.make({
      name,
      owner: "test",
      scope: { kind: "installation", name: "" },
      ttlMs: 600_000,
      ownedMax: null,
    });
    if (made.kind !== "made") throw new Error(made.kind);
    return { subject: `robot:${name}`, token: made.secret };
  };
  return { authenticate, robots, caller };
}
