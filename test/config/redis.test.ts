import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { describeAddress, parseAddress } from "../../src/adapters/counters/redis/address.ts";
import { readConfig } from "../../src/config/config.ts";

const folder = mkdtempSync(join(tmpdir(), "gangway-config-"));
const PEM = join(folder, "ca.crt");
const NOT_PEM = join(folder, "notes.txt");
writeFileSync(PEM, "-----BEGIN CERTIFICATE-----\n");
writeFileSync(NOT_PEM, "secret");
after(() => rmSync(folder, { recursive: true }));

const NO_TLS = { ca: null, cert: null, key: null, serverName: null };
const NOBODY = { username: null, password: null };
const PLAIN = { keyPrefix: "gangway", ...NOBODY, sentinel: NOBODY, tls: NO_TLS };

const good: Record<string, { env: Record<string, string>; redis: object | null }> = {
  "nothing is said": { env: {}, redis: null },
  "only a URL is given": { env: { REDIS_URL: "redis://r" }, redis: { url: "redis://r", ...PLAIN } },
  "secrets come beside the URL": {
    env: {
      REDIS_URL: "redis+sentinel://s1,s2/main",
      REDIS_KEY_PREFIX: "ours",
      REDIS_USERNAME: "u",
      REDIS_PASSWORD: "p",
      REDIS_SENTINEL_USERNAME: "su",
      REDIS_SENTINEL_PASSWORD: "sp",
    },
    redis: {
      url: "redis+sentinel://s1,s2/main",
      keyPrefix: "ours",
      username: "u",
      password: "p",
      sentinel: { username: "su", password: "sp" },
      tls: NO_TLS,
    },
  },
  "certificates are files": {
    env: {
      REDIS_URL: "rediss+cluster://r",
      REDIS_CA_FILE: PEM,
      REDIS_CERT_FILE: PEM,
      REDIS_KEY_FILE: PEM,
      REDIS_TLS_SERVER_NAME: "redis.example",
    },
    redis: {
      ...PLAIN,
      url: "rediss+cluster://r",
      tls: {
        ca: "-----BEGIN CERTIFICATE-----\n",
        cert: "-----BEGIN CERTIFICATE-----\n",
        key: "-----BEGIN CERTIFICATE-----\n",
        serverName: "redis.example",
      },
    },
  },
};
for (const [name, { env, redis }] of Object.entries(good)) {
  test(`the settings of Redis are read where ${name}`, () => {
    assert.deepEqual(readConfig("/tmp", env).redis, redis);
  });
}

const refused: Record<string, { env: Record<string, string>; error: RegExp }> = {
  "another protocol": { env: { REDIS_URL: "http://u:secret@r" }, error: /^REDIS_URL .*allowed are redis:\/\/USER/ },
  "no host": { env: { REDIS_URL: "redis://:secret@" }, error: /^REDIS_URL .*matches none of these forms/ },
  "several hosts of one server": {
    env: { REDIS_URL: "redis://:secret@a,b" },
    error: /^REDIS_URL .*only \+sentinel and \+cluster take several hosts/,
  },
  "a port that is none": {
    env: { REDIS_URL: "redis://:secret@a:99999" },
    error: /^REDIS_URL .*must be HOST or HOST:PORT/,
  },
  "sentinels without a name": {
    env: { REDIS_URL: "redis+sentinel://:secret@a:1" },
    error: /^REDIS_URL .*name for the primary must follow the hosts/,
  },
  "a cluster with a database": {
    env: { REDIS_URL: "redis+cluster://:secret@a/1" },
    error: /^REDIS_URL .*no databases/,
  },
  "a database that is no number": {
    env: { REDIS_URL: "redis://:secret@a/one" },
    error: /^REDIS_URL .*must be a number/,
  },
  "a password that is not encoded": { env: { REDIS_URL: "redis://:secret%@a" }, error: /^REDIS_URL .*its password/ },
  "certificates without TLS": {
    env: { REDIS_URL: "redis://:secret@a", REDIS_CA_FILE: PEM },
    error: /^REDIS_CA_FILE is set, but REDIS_URL asks for no TLS/,
  },
  "a certificate without a key": {
    env: { REDIS_URL: "rediss://:secret@a", REDIS_CERT_FILE: PEM },
    error: /^REDIS_CERT_FILE and REDIS_KEY_FILE belong together/,
  },
  "a file that is not there": {
    env: { REDIS_URL: "rediss://:secret@a", REDIS_CA_FILE: join(folder, "gone") },
    error: /^REDIS_CA_FILE names .*gone, which cannot be read: ENOENT/,
  },
  "a file of another kind": {
    env: { REDIS_URL: "rediss://:secret@a", REDIS_CA_FILE: NOT_PEM },
    error: /^REDIS_CA_FILE names .*notes.txt, which is not in PEM/,
  },
};
for (const [name, { env, error }] of Object.entries(refused)) {
  test(`refused without showing a password: ${name}`, () => {
    assert.throws(
      () => readConfig("/tmp", env),
      (thrown) => thrown instanceof Error && error.test(thrown.message) && !thrown.message.includes("secret"),
    );
  });
}

const addresses: Record<string, { url: string; is: ReturnType<typeof parseAddress>; shown: string }> = {
  "a server alone": {
    url: "redis://localhost",
    is: { kind: "standalone", tls: false, hosts: [{ host: "localhost", port: 6379 }], ...NOBODY, db: 0 },
    shown: "Redis at localhost:6379",
  },
  "a user, an encoded password and a database": {
    url: "rediss://me:p%40ss:w%2Frd@r.example:6380/2",
    is: {
      kind: "standalone",
      tls: true,
      hosts: [{ host: "r.example", port: 6380 }],
      username: "me",
      password: "p@ss:w/rd",
      db: 2,
    },
    shown: "Redis at r.example:6380",
  },
  "a password alone, on IPv6": {
    url: "redis://:pw@[::1]:7000",
    is: {
      kind: "standalone",
      tls: false,
      hosts: [{ host: "::1", port: 7000 }],
      username: null,
      password: "pw",
      db: 0,
    },
    shown: "Redis at [::1]:7000",
  },
  sentinels: {
    url: "redis+sentinel://s1:26380,s2/main/3",
    is: {
      kind: "sentinel",
      tls: false,
      hosts: [
        { host: "s1", port: 26_380 },
        { host: "s2", port: 26_379 },
      ],
      ...NOBODY,
      name: "main",
      db: 3,
    },
    shown: "Redis main of the sentinels s1:26380, s2:26379",
  },
  "a cluster": {
    url: "rediss+cluster://:pw@a:1,b:2/",
    is: {
      kind: "cluster",
      tls: true,
      hosts: [
        { host: "a", port: 1 },
        { host: "b", port: 2 },
      ],
      username: null,
      password: "pw",
    },
    shown: "the Redis Cluster at a:1, b:2",
  },
};
for (const [name, { url, is, shown }] of Object.entries(addresses)) {
  test(`a URL of Redis is understood: ${name}`, () => {
    assert.deepEqual(parseAddress(url), is);
    assert.equal(describeAddress(parseAddress(url)), shown);
  });
}
