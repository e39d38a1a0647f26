/** Tokens of a real issuer of OpenID Connect, found by its discovery document. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { exportJWK } from "jose";
import { Provider } from "oidc-provider";
import { connectAuthentication } from "../../src/compose/access.ts";
import { readConfig } from "../../src/config/config.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { signingKey } from "../support/issuer.ts";
import { memoryRobots } from "../support/memory-robots.ts";

/** Starts an issuer that gives its client tokens for the audience `gangway`, with the keys of these algorithms. */
async function startProvider(t: TestContext, alg: string) {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const key = await signingKey("real", alg);
  const client = { client_id: "robot", client_secret: "of the robot", grant_types: ["client_credentials"] };
  const resource = { scope: "call", audience: "gangway", accessTokenFormat: "jwt", jwt: { sign: { alg } } };
  const provider = new Provider(issuer, {
    clients: [{ ...client, redirect_uris: [], response_types: [], id_token_signed_response_alg: alg }],
    jwks: { keys: [{ ...(await exportJWK(key.private)), kid: key.id, alg, use: "sig" }] },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => "urn:gangway",
        useGrantedResource: () => true,
        getResourceServerInfo: () => resource,
      },
    },
  });
  server.on("request", provider.callback());
  const token = async () => {
    const response = await fetch(`${issuer}/token`, {
      method: "POST",
      headers: { authorization: `Basic ${btoa("robot:of+the+robot")}` },
      body: new URLSearchParams({ grant_type: "client_credentials" }),
    });
    const answer = (await response.json()) as { readonly access_token?: string };
    assert.ok(answer.access_token !== undefined, JSON.stringify(answer));
    return answer.access_token;
  };
  return { issuer, token };
}

for (const alg of ["RS256", "ES256", "EdDSA"]) {
  test(`a service that is configured by a file takes the issuer's tokens, signed with ${alg}`, async (t) => {
    const { issuer, token } = await startProvider(t, alg);
    const folder = mkdtempSync(join(tmpdir(), "gangway-issuer-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "authentication.yaml");
    writeFileSync(file, `issuers:\n  - issuer: ${issuer}\n    audiences: [gangway]\n    subjectClaim: client_id\n`);
    const config = readConfig("/", { GANGWAY_AUTHENTICATION_FILE: file });
    const failures: unknown[] = [];
    const telemetry = { loopFailed: (facts: object) => void failures.push(facts), authenticationFileRead: () => {} };
    const parts = new AsyncDisposableStack();
    t.after(() => parts.disposeAsync());
    const ports = { clock: systemClock(), telemetry, audit: async () => {}, verifyRobot: memoryRobots().verify };
    const { authenticate } = await connectAuthentication(config, ports, parts);
    const answer = await authenticate({ authorization: [`Bearer ${await token()}`], certificate: null });
    assert.equal(
      answer.kind === "identity" && answer.identity.subject,
      `${issuer}#robot`,
      JSON.stringify([answer, failures]),
    );
  });
}
