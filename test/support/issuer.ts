/** An issuer of tokens for tests: discovery and keys over HTTP, and tokens with any fault. */
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from "jose";

export type SigningKey = {
  readonly id: string;
  readonly alg: string;
  readonly private: CryptoKey;
  readonly public: CryptoKey;
};

export async function signingKey(id: string, alg = "RS256"): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { id, alg, private: privateKey, public: publicKey };
}

export class TestIssuer {
  readonly url: string;
  /** The paths that were asked for. */
  readonly asked: string[] = [];
  /** False: every request gets status 503. */
  isThere = true;
  /** False: the discovery document alone gets status 503. */
  hasDocument = true;
  /** Where the keys are, as the discovery document says it. Other paths get status 404. */
  keysPath = "/keys";
  keys: readonly SigningKey[];
  readonly #close: () => void;

  private constructor(url: string, keys: readonly SigningKey[], close: () => void) {
    this.url = url;
    this.keys = keys;
    this.#close = close;
  }

  static start(...keys: readonly SigningKey[]): Promise<TestIssuer> {
    return TestIssuer.#serve("http", createServer, keys);
  }

  /** With a certificate for 127.0.0.1 and its key. */
  static startTls(tls: { readonly cert: string; readonly key: string }, ...keys: readonly SigningKey[]) {
    return TestIssuer.#serve("https", (answer) => createTlsServer(tls, answer), keys);
  }

  static async #serve(scheme: string, serve: (answer: RequestListener) => Server, keys: readonly SigningKey[]) {
    const server = serve((request, response) => {
      void issuer.#answer(request.url ?? "").then(({ status, body }) => {
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const issuer: TestIssuer = new TestIssuer(url, keys, () => {
      server.close();
      server.closeAllConnections();
    });
    return issuer;
  }

  /** A token of the first key, good for ten minutes after `nowMs`. `claims` and `header` replace members. */
  sign(
    claims: Readonly<Record<string, unknown>> = {},
    {
      key = this.keys[0],
      header = {},
      nowMs = Date.now(),
    }: { key?: SigningKey | undefined; header?: object; nowMs?: number } = {},
  ): Promise<string> {
    if (key === undefined) throw new Error("the issuer has no key");
    const now = Math.floor(nowMs / 1000);
    const all = { iss: this.url, aud: "gangway", sub: "me", iat: now, exp: now + 600, ...claims };
    return new SignJWT(all).setProtectedHeader({ alg: key.alg, kid: key.id, ...header }).sign(key.private);
  }

  close(): void {
    this.#close();
  }

  async #answer(path: string): Promise<{ readonly status: number; readonly body: object }> {
    this.asked.push(path);
    if (!this.isThere) return { status: 503, body: {} };
    if (path === "/.well-known/openid-configuration") {
      const status = this.hasDocument ? 200 : 503;
      return { status, body: { issuer: this.url, jwks_uri: `${this.url}${this.keysPath}` } };
    }
    const keys = this.keys.map(async (key) => ({ ...(await exportJWK(key.public)), kid: key.id, alg: key.alg }));
    return { status: path === this.keysPath ? 200 : 404, body: { keys: await Promise.all(keys) } };
  }
}
