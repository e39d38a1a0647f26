/** The files of the listeners' TLS: what is refused at the start, and how changes of them apply. */
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile as readFileOf } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { followTls } from "../../src/compose/tls.ts";
import { readConfig } from "../../src/config/config.ts";
import type { Telemetry } from "../../src/telemetry/events.ts";
import { waitUntil } from "../support/bounded.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";

function inFolder(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "gangway-tls-"));
  const certificates = new Certificates();
  t.after(() => {
    rmSync(folder, { recursive: true });
    certificates.remove();
  });
  const [first, second] = [certificates.sign("first", "DNS:first"), certificates.sign("second", "DNS:second")];
  const paths = { cert: join(folder, "tls.crt"), key: join(folder, "tls.key"), ca: certificates.caFile };
  copyFileSync(first.certFile, paths.cert);
  copyFileSync(first.keyFile, paths.key);
  const env = { GANGWAY_TLS_CERT_FILE: paths.cert, GANGWAY_TLS_KEY_FILE: paths.key };
  return { folder, certificates, first, second, paths, env };
}

describe("files of TLS", { skip: !hasOpenssl() }, () => {
  test("a certificate with its key, and authorities of clients, are read", (t) => {
    const { env, paths } = inFolder(t);
    assert.equal(readConfig("/", {}).tls, null);
    const tls = (more: Readonly<Record<string, string>>) => readConfig("/", { ...env, ...more }).tls;
    assert.equal(tls({})?.clients, "none");
    assert.equal(tls({})?.context.minVersion, "TLSv1.2");
    assert.equal(tls({ GANGWAY_TLS_CLIENT_CA_FILE: paths.ca })?.clients, "required");
    const optional = { GANGWAY_TLS_CLIENT_CA_FILE: paths.ca, GANGWAY_TLS_CLIENT: "optional" };
    assert.equal(tls(optional)?.clients, "optional");
  });

  const wrong: Record<string, { set: (of: ReturnType<typeof inFolder>) => Record<string, string>; error: RegExp }> = {
    "a certificate without a key": {
      set: () => ({ GANGWAY_TLS_KEY_FILE: "" }),
      error: /GANGWAY_TLS_CERT_FILE and GANGWAY_TLS_KEY_FILE belong together/,
    },
    "the key of another certificate": {
      set: ({ second }) => ({ GANGWAY_TLS_KEY_FILE: second.keyFile }),
      error: /GANGWAY_TLS_… cannot be used: .*second\.key is not the key of the certificate in .*tls\.crt/,
    },
    "a key in place of the certificate": {
      set: ({ paths }) => ({ GANGWAY_TLS_CERT_FILE: paths.key }),
      error: /tls\.key has no certificate in PEM/,
    },
    "a certificate in place of the key": {
      set: ({ paths }) => ({ GANGWAY_TLS_KEY_FILE: paths.cert }),
      error: /tls\.crt has no private key in PEM/,
    },
    "a file that does not exist": {
      set: ({ folder }) => ({ GANGWAY_TLS_CERT_FILE: join(folder, "none") }),
      error: /GANGWAY_TLS_… cannot be used: ENOENT/,
    },
    "authorities that are none": {
      set: ({ folder }) => {
        const path = join(folder, "ca.crt");
        writeFileSync(path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        return { GANGWAY_TLS_CLIENT_CA_FILE: path };
      },
      error: /ca\.crt has a certificate that cannot be read/,
    },
    "a word that means nothing": {
      set: ({ paths }) => ({ GANGWAY_TLS_CLIENT_CA_FILE: paths.ca, GANGWAY_TLS_CLIENT: "maybe" }),
      error: /GANGWAY_TLS_CLIENT is "maybe"; allowed are optional, required/,
    },
    "certificates of clients that nothing verifies": {
      set: () => ({ GANGWAY_TLS_CLIENT: "required" }),
      error: /GANGWAY_TLS_CLIENT is set, but not GANGWAY_TLS_CLIENT_CA_FILE/,
    },
    "authorities of clients without TLS": {
      set: ({ paths }) => ({
        GANGWAY_TLS_CERT_FILE: "",
        GANGWAY_TLS_KEY_FILE: "",
        GANGWAY_TLS_CLIENT_CA_FILE: paths.ca,
      }),
      error: /clients show certificates only if GANGWAY_TLS_CERT_FILE is/,
    },
  };
  for (const [name, { set, error }] of Object.entries(wrong)) {
    test(`refused: ${name}; the error shows no key`, (t) => {
      const files = inFolder(t);
      assert.throws(
        () => readConfig("/", { ...files.env, ...set(files) }),
        (thrown: Error) => error.test(thrown.message) && !thrown.message.includes("PRIVATE KEY-----"),
      );
    });
  }

  test("a changed pair applies once both files fit; until then the old one stays, and one line says why", async (t) => {
    const { env, second, paths } = inFolder(t);
    const told: string[] = [];
    let wake: (() => void) | null = null;
    const sleep = (_ms: number, signal?: AbortSignal) =>
      new Promise<void>((done) => {
        wake = done;
        signal?.addEventListener("abort", () => done(), { once: true });
      });
    const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep };
    const telemetry = {
      certificateRead: ({ file }: { file: string }) => void told.push(`read ${file}`),
      loopFailed: ({ error }: { error: unknown }) => void told.push(String(error)),
    } as Partial<Telemetry> as Telemetry;
    await using parts = new AsyncDisposableStack();
    const tls = followTls(readConfig("/", env).tls, { clock, telemetry, parts });
    assert.ok(tls !== null);
    const applied: unknown[] = [];
    tls.onChange(({ cert }) => void applied.push(cert));
    const lookAgain = async () => {
      const sleeping = wake;
      sleeping?.();
      await waitUntil("it sleeps again", () => wake !== sleeping, { pollMs: 1 });
    };
    const text = (path: string) => readFileOf(path, "utf8");
    await lookAgain();
    copyFileSync(second.certFile, paths.cert);
    await lookAgain();
    await lookAgain();
    assert.equal(told.length, 1);
    assert.match(told[0] ?? "", /tls\.key is not the key of the certificate/);
    assert.deepEqual(applied, []);
    copyFileSync(second.keyFile, paths.key);
    await lookAgain();
    assert.deepEqual(told.slice(1), [`read ${paths.cert}`]);
    assert.deepEqual(applied, [await text(second.certFile)]);
    assert.equal(tls.context().key, await text(second.keyFile));
  });
});
