/** A real issuer of OpenID Connect at which a browser logs in by the authorization code. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { Provider } from "oidc-provider";

export const CLIENT = { id: "gangway", secret: "of the client" };

/** People whom the issuer knows, with their groups. */
export type People = Map<string, readonly string[]>;

/**
 * `origin`: of the service that people come back to. Each login is that of `person`; null: the person declines. ID
 * tokens live for `idTokenSeconds`.
 */
export async function startLoginProvider(t: Pick<TestContext, "after">, origin: string) {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const people: People = new Map([["ann", []]]);
  const state = {
    person: "ann" as string | null,
    asked: [] as string[],
    idTokenSeconds: 3_600,
    isThere: true,
    /** Answers requests for tokens, or lets the issuer answer with `go`. Null: the issuer answers. */
    onToken: null as ((response: ServerResponse, go: () => void) => void) | null,
  };
  const provider = new Provider(issuer, {
    clients: [
      {
        ...{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [`${origin}/auth/callback`] },
        ...{ grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] },
      },
    ],
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false }, revocation: { enabled: true } },
    claims: { openid: ["sub", "groups"] },
    conformIdTokenClaims: false,
    ttl: { IdToken: () => state.idTokenSeconds },
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    findAccount: async (_: unknown, accountId: string) => {
      const groups = people.get(accountId);
      return groups === undefined ? undefined : { accountId, claims: async () => ({ sub: accountId, groups }) };
    },
    loadExistingGrant: async ({ oidc }: { readonly oidc: GrantContext }) => {
      const grant = new provider.Grant({ accountId: oidc.session.accountId, clientId: oidc.client.clientId });
      grant.addOIDCScope("openid");
      await grant.save();
      return grant;
    },
    interactions: { url: (_: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
  });
  const handle = provider.callback();
  const finish = (request: IncomingMessage, response: ServerResponse) => {
    const declined = { error: "access_denied", error_description: "the person said \u001b[31mno" };
    const result = state.person === null ? declined : { login: { accountId: state.person } };
    return provider.interactionFinished(request, response, result);
  };
  server.on("request", (request, response) => {
    const path = (request.url ?? "").split("?")[0] ?? "";
    state.asked.push(`${request.method} ${path}`);
    if (!state.isThere) response.writeHead(502).end("<p>secret of the proxy</p>");
    else if (path.startsWith("/interaction/")) void finish(request, response);
    else if (path === "/token" && state.onToken !== null) state.onToken(response, () => void handle(request, response));
    else void handle(request, response);
  });
  const asked = (what: string) => state.asked.filter((one) => one === what).length;
  return { issuer, people, state, asked };
}

type GrantContext = {
  readonly session: { readonly accountId: string };
  readonly client: { readonly clientId: string };
};
