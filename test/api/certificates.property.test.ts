/** Certificates with every fault: each gets no connection or UNAUTHENTICATED, and no other identity than its own. */
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import fc from "fast-check";
import { createAuthenticate } from "../../src/access/authenticate.ts";
import { CONNECTION_BOUNDS } from "../../src/api/connection-bounds.ts";
import { CallError, codeName } from "../../src/cli/rpc/call-error.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import { NO_AUTHENTICATION } from "../../src/core/access/authentication-settings.ts";
import { AccessService } from "../../src/gen/gangway/v1/access_service_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { ServerTls } from "../../src/runtime/server-tls.ts";
import { Certificates, hasOpenssl, type IssuedCertificate } from "../support/certificates.ts";
import { startFixture } from "./fixture.ts";

const never = new AbortController().signal;
const away = () => Promise.reject(new Error("not in this test"));

type Shown = { readonly cert: string; readonly key: string };

/** A service that knows callers by certificates of one authority. `as` returns a subject, or why there is none. */
async function serve(t: TestContext, clients: ServerTls["clients"], own: Certificates) {
  const authenticate = createAuthenticate(
    { clock: systemClock(), verifyToken: away, verifyRobot: away, reviewToken: away },
    { ...NO_AUTHENTICATION, certificates: true },
  );
  const tls = own.serverTls("server", clients);
  const { api, internal } = await startFixture(t, { authenticate }, CONNECTION_BOUNDS, tls);
  const ca = own.read(own.caFile);
  const as = async (shown: Shown): Promise<string> => {
    const client = connect(api.address, never, { tls: { ca, ...shown, serverName: null }, token: null });
    try {
      return (await client.call(AccessService.method.whoAmI, {})).identity?.subject ?? "";
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      assert.doesNotMatch(error.details, /secret/, "an error shows a name");
      return codeName(error.code);
    } finally {
      client.close();
    }
  };
  return { as, internal };
}

function authority(t: TestContext): Certificates {
  const certificates = new Certificates();
  t.after(() => certificates.remove());
  return certificates;
}

const san = (names: string) => `subjectAltName=${names}`;
const DAY_MS = 86_400_000;
const LEAF = "basicConstraints=critical,CA:FALSE";
const ME = [san("DNS:secret.example")];

/** `names`: the certificate is trusted, but names nobody. Others get no connection where one is required. */
const FAULTS: Readonly<Record<string, { of: IssuedCertificate; names?: true }>> = {
  "it has expired": { of: { extensions: ME, days: -1 } },
  "it is not valid yet": { of: { extensions: ME, startMs: Date.now() + DAY_MS } },
  "it has signed itself": { of: { extensions: ME, by: "self" } },
  "it is for servers alone": { of: { extensions: [...ME, "extendedKeyUsage=serverAuth"] } },
  "its key is not for signatures": { of: { extensions: [...ME, "keyUsage=critical,keyEncipherment"] } },
  "an extension is critical and unknown": { of: { extensions: [...ME, "1.2.3.4=critical,DER:0500"] } },
  "it has no names": { of: { extensions: [LEAF] }, names: true },
  "it has an address alone": { of: { extensions: [san("IP:10.0.0.1")] }, names: true },
  "it has an email address alone": { of: { extensions: [san("email:secret@a.example")] }, names: true },
  "two SPIFFE URIs": { of: { extensions: [san("URI:spiffe://a/secret,URI:spiffe://a/b")] }, names: true },
  "a SPIFFE URI and another": { of: { extensions: [san("URI:spiffe://a/secret,URI:https://a")] }, names: true },
  "a SPIFFE URI in capitals": { of: { extensions: [san("URI:SPIFFE://a/secret")] }, names: true },
  "a SPIFFE URI without a domain": { of: { extensions: [san("URI:spiffe:///secret")] }, names: true },
  "a SPIFFE URI with a domain in capitals": { of: { extensions: [san("URI:spiffe://A/secret")] }, names: true },
  "a SPIFFE URI with a port": { of: { extensions: [san("URI:spiffe://a:1/secret")] }, names: true },
  "a SPIFFE URI with a user": { of: { extensions: [san("URI:spiffe://b@a/secret")] }, names: true },
  "a SPIFFE URI with a query": { of: { extensions: [san("URI:spiffe://a/secret?b")] }, names: true },
  "a SPIFFE URI with an empty part": { of: { extensions: [san("URI:spiffe://a//secret")] }, names: true },
  "a SPIFFE URI that climbs": { of: { extensions: [san("URI:spiffe://a/b/../secret")] }, names: true },
  "a SPIFFE URI with encoded characters": { of: { extensions: [san("URI:spiffe://a/%73ecret")] }, names: true },
  "a SPIFFE URI that is too long": {
    of: { extensions: [san(`URI:spiffe://a/${"secret".repeat(90)}`)] },
    names: true,
  },
  "a pattern of DNS names": { of: { extensions: [san("DNS:*.secret.example")] }, names: true },
  "a DNS name with an empty part": { of: { extensions: [san("DNS:secret..example")] }, names: true },
  "a DNS name that ends with a dot": { of: { extensions: [san("DNS:secret.example.")] }, names: true },
  "a DNS name that is too long": { of: { extensions: [san(`DNS:${"secret.".repeat(40)}a`)] }, names: true },
  "a DNS name with a part that is too long": { of: { extensions: [san(`DNS:${"secret".repeat(11)}`)] }, names: true },
  "a wrong DNS name before a right one": { of: { extensions: [san("DNS:*,DNS:secret.example")] }, names: true },
  "thousands of names": {
    of: { extensions: [san(["DNS:-", ...Array.from({ length: 300 }, (_, at) => `DNS:a${at}`)].join(","))] },
    names: true,
  },
};

describe("certificates that do not count", { skip: !hasOpenssl() }, () => {
  test("each is UNAUTHENTICATED, or gets no connection where certificates are required", async (t) => {
    const [own, other] = [authority(t), authority(t)];
    const [optional, required] = [await serve(t, "optional", own), await serve(t, "required", own)];
    const good = own.issue({ extensions: ME });
    for (const served of [optional, required]) assert.equal(await served.as(good), "dns:secret.example");
    const between = own.issue({ extensions: ["basicConstraints=critical,CA:TRUE"], subject: "/CN=between" });
    const under = own.issue({ extensions: ME, by: between });
    for (const served of [optional, required]) assert.equal(await served.as(under), "dns:secret.example");
    const noAuthority = own.issue({ extensions: [LEAF], subject: "/CN=no authority" });
    const [leaf = ""] = under.cert.split(/(?<=-----END CERTIFICATE-----\n)/);
    const shown: Readonly<Record<string, Shown>> = {
      "another authority has signed it": other.issue({ extensions: ME }),
      "no authority has signed what signed it": own.issue({ extensions: ME, by: noAuthority }),
      "what signed it is not shown": { ...under, cert: leaf },
    };
    for (const [name, one] of Object.entries(shown)) {
      assert.equal(await optional.as(one), "UNAUTHENTICATED", name);
      assert.equal(await required.as(one), "UNAVAILABLE", name);
    }
    for (const [name, { of, names }] of Object.entries(FAULTS)) {
      const one = own.issue(of);
      assert.equal(await optional.as(one), "UNAUTHENTICATED", name);
      assert.equal(await required.as(one), names ? "UNAUTHENTICATED" : "UNAVAILABLE", name);
    }
    assert.deepEqual([optional.internal, required.internal], [[], []]);
  });

  /** Bytes of a name as nobody writes them: NUL, quotes, line ends, what looks like another name, and other scripts. */
  const odd = fc.constantFrom(
    "\0",
    '"',
    "\\",
    "\n",
    ", ",
    ",",
    ":",
    "URI:",
    "DNS:",
    "=",
    "é",
    "ａ",
    "\u202e",
    " ",
    "%00",
    "/",
  );
  const plain = fc.constantFrom("a", "b.example", "spiffe://", "a/b", "x-1", "..", "", "A", "*.");
  const name = fc.record({
    kind: fc.constantFrom("DNS" as const, "URI" as const),
    text: fc
      .array(fc.oneof({ weight: 2, arbitrary: plain }, odd), { minLength: 0, maxLength: 4 })
      .map((all) => all.join("")),
  });

  test("names of any bytes give the identity of exactly that name, or none", async (t) => {
    const own = authority(t);
    const { as, internal } = await serve(t, "optional", own);
    const property = fc.asyncProperty(fc.array(name, { minLength: 1, maxLength: 3 }), async (names) => {
      const shown = own.issue({ extensions: [`subjectAltName=DER:${encoded(names)}`] });
      assert.ok(["UNAUTHENTICATED", "UNAVAILABLE", expected(names)].includes(await as(shown)), JSON.stringify(names));
    });
    await fc.assert(property, { numRuns: 60 });
    assert.deepEqual(internal, []);
  });
});

type AnyName = { readonly kind: "DNS" | "URI"; readonly text: string };

/** The one subject that these names may give; null: none. */
function expected(names: readonly AnyName[]): string | null {
  const uris = names.filter(({ kind }) => kind === "URI").map(({ text }) => text);
  const spiffe = uris.find((uri) => /^spiffe:\/\//i.test(uri));
  if (spiffe !== undefined) {
    const isOne = uris.length === 1 && /^spiffe:\/\/[a-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/.test(spiffe);
    return isOne && !/\/\.{1,2}(\/|$)/.test(spiffe) ? spiffe : null;
  }
  const first = names.find(({ kind }) => kind === "DNS")?.text;
  return first !== undefined && /^[\w-]+(\.[\w-]+)*$/.test(first) ? `dns:${first.toLowerCase()}` : null;
}

/** A sequence of general names in DER, as hexadecimal bytes. */
function encoded(names: readonly AnyName[]): string {
  const tagged = (tag: number, content: Buffer) => {
    const { length } = content;
    const long = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
    return Buffer.concat([Buffer.from([tag, ...long]), content]);
  };
  const all = names.map(({ kind, text }) => tagged(kind === "DNS" ? 0x82 : 0x86, Buffer.from(text)));
  return tagged(0x30, Buffer.concat(all))
    .toString("hex")
    .replaceAll(/(..)(?=.)/g, "$1:");
}
