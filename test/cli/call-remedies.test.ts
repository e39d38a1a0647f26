/** A call that fails for its encryption or its caller says what to do, and not to start the service. */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, suite, type TestContext, test } from "node:test";
import { CONNECTION_BOUNDS } from "../../src/api/connection-bounds.ts";
import { INSTALLATION } from "../../src/core/access/scope.ts";
import { type ServerTls, tlsContext, tlsPaths } from "../../src/runtime/server-tls.ts";
import { startFixture } from "../api/fixture.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import { knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { run } from "./harness.ts";

/** A server with one certificate, which never changes. */
function tlsOf(given: { readonly cert: string; readonly key: string }): ServerTls {
  const files = { certFile: "cert", keyFile: "key", clientCaFile: null };
  const texts = new Map([
    ["cert", given.cert],
    ["key", given.key],
  ]);
  const context = tlsContext(
    files,
    tlsPaths(files).map((path) => texts.get(path) ?? ""),
  );
  return { clients: "none", context: () => context, onChange: () => {} };
}

suite("encryption", { skip: !hasOpenssl() }, () => {
  const own = new Certificates();
  const other = new Certificates();
  after(() => {
    own.remove();
    other.remove();
  });
  const here = ["subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const files = () => ({ "ca.crt": own.read(own.caFile), "other.crt": other.read(other.caFile) });
  const mistakes: Readonly<Record<string, { tls: () => ServerTls | null; flags: string; says: RegExp }>> = {
    "plain calls to a service that encrypts": {
      tls: () => own.serverTls("server", "none"),
      flags: "",
      says: /The service encrypts its calls, and this command does not\. Give --ca-file FILE/,
    },
    "plain calls to a service that wants client certificates": {
      tls: () => own.serverTls("server", "required"),
      flags: "",
      says: /The service encrypts its calls, and this command does not\. Give --ca-file FILE/,
    },
    "encrypted calls to a service that does not encrypt": {
      tls: () => null,
      flags: "--ca-file ca.crt",
      says: /The service does not encrypt its calls, and this command does\. Leave out --tls, --ca-file/,
    },
    "an authority that this machine does not know": {
      tls: () => own.serverTls("server", "none"),
      flags: "--tls",
      says: /No authority that this command knows has signed .* Give --ca-file FILE/,
    },
    "the file of another authority": {
      tls: () => own.serverTls("server", "none"),
      flags: "--ca-file other.crt",
      says: /No authority that this command knows has signed .* Give --ca-file FILE/,
    },
    "a certificate that signs itself": {
      tls: () => tlsOf(own.issue({ extensions: here, by: "self" })),
      flags: "--ca-file ca.crt",
      says: /No authority that this command knows has signed/,
    },
    "a certificate for another name": {
      tls: () => tlsOf(own.issue({ extensions: ["subjectAltName=DNS:gangway.example"] })),
      flags: "--ca-file ca.crt",
      says: /certificate is for another name .*\n.*--tls-server-name NAME/,
    },
    "an expired certificate": {
      tls: () => tlsOf(own.issue({ extensions: here, startMs: Date.now() - 3 * 86_400_000 })),
      flags: "--ca-file ca.crt",
      says: /certificate has expired\. Its operator must renew it/,
    },
    "a certificate of the future": {
      tls: () => tlsOf(own.issue({ extensions: here, startMs: Date.now() + 86_400_000 })),
      flags: "--ca-file ca.crt",
      says: /certificate is not valid yet\. Compare the clocks/,
    },
    "no certificate for a service that wants one": {
      tls: () => own.serverTls("server", "required"),
      flags: "--ca-file ca.crt",
      says: /wants a certificate of this command, .* give --client-cert FILE and[\s\S]* GANGWAY_TLS_CLIENT=optional\./,
    },
  };
  for (const [name, { tls, flags, says }] of Object.entries(mistakes)) {
    test(name, async (t) => {
      const served = tls();
      const { api } = await startFixture(t, {}, CONNECTION_BOUNDS, ...(served === null ? [] : [served]));
      for (const line of ["list", "watch"]) {
        const words = [line, ...flags.split(" ").filter((word) => word !== "")];
        const ran = await run(words, { address: api.address, files: files() });
        assert.equal(ran.exitCode, 4, ran.stderr);
        assert.match(ran.stderr, says);
        assert.doesNotMatch(ran.stderr, /gangway up/);
      }
    });
  }
});

/** A service with callers, and a command line that shows a text as its token. */
async function withCallers(t: TestContext) {
  const known = await knownCallers(t);
  const { authorization, admin, bind } = memoryAccess({ enforces: true });
  const { authenticate, robots } = known;
  const { api } = await startFixture(t, { authenticate, robots, authorization, access: admin });
  const root = await known.caller("oidc", "root");
  await bind({ to: { kind: "subject", name: root.subject }, role: "admin", scope: INSTALLATION });
  const gangway = (line: string, token?: string) =>
    run([...line.split(" "), ...(token === undefined ? [] : ["--token-file", "t"])], {
      address: api.address,
      files: { t: token ?? "" },
    });
  return { known, gangway };
}

test("a caller without a token is told of login and of --token-file", async (t) => {
  const { gangway } = await withCallers(t);
  const ran = await gangway("list");
  assert.match(ran.stderr, /The command showed no token\. Give one: "gangway login", or --token-file FILE/);
});

test("a caller whose token does not count is told to get a new one", async (t) => {
  const { gangway } = await withCallers(t);
  for (const token of ["gwt_nonsense", "eyJhbGciOiJub25lIn0.e30."]) {
    const ran = await gangway("list", token);
    assert.match(
      ran.stderr,
      /a token that the service does not take: it has expired, .*\n.*"gangway login", or --token-file/,
    );
  }
});

test("a caller without a permission is told who it is and who gives permissions", async (t) => {
  const { known, gangway } = await withCallers(t);
  const ann = await known.caller("oidc", "ann");
  const ran = await gangway("queue create nlp", ann.token);
  assert.equal(ran.exitCode, 3, ran.stderr);
  assert.match(ran.stderr, /"gangway whoami" says who you are here, .*\n.*"gangway binding create"/);
});

test("where nothing listens, and where another program does, the old hint stands", async (t) => {
  const silent = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
  t.after(() => silent.close());
  await new Promise((resolve) => silent.once("listening", resolve));
  const { port } = silent.address() as { port: number };
  for (const address of ["127.0.0.1:1", `127.0.0.1:${port}`]) {
    const ran = await run(["list"], { address });
    assert.equal(ran.exitCode, 4);
    assert.match(ran.stderr, /Start the service with "gangway up"/);
  }
});
