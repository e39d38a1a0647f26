/** The compose file: what can be known of it without running containers. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { lacking } from "../../src/api/exposure.ts";
import { authenticates } from "../../src/compose/access.ts";
import { readConfig } from "../../src/config/config.ts";
import { hasOpenssl } from "../support/certificates.ts";
import { type Doc, deploy } from "./manifests.ts";

const FILE = join(deploy, "compose.yaml");
const settings = (name: string): Doc => parse(readFileSync(join(deploy, "compose", name), "utf8"));
/** As compose reads it, with its merge keys. */
const { services, volumes } = parse(readFileSync(FILE, "utf8"), { merge: true }) as Doc;
const named = Object.entries<Doc>(services);
const own = named.filter(([, { image }]) => image === "gangway:compose");

/** The path of this repository behind a path in a container. `made`: the folder of `setup`. Null: nothing is there. */
function mountedAt(service: Doc, path: string, made: string): string | null {
  for (const mount of service.volumes ?? []) {
    const [from, to] = mount.split(":");
    if (!path.startsWith(`${to}/`)) continue;
    return join(from === "setup" ? made : join(deploy, from), path.slice(to.length + 1));
  }
  return null;
}

test("the stores listen only on this machine, Redis evicts nothing, and both start alone", () => {
  for (const store of ["postgres", "redis"]) {
    const { ports, healthcheck, depends_on } = services[store];
    assert.ok(ports.length > 0 && healthcheck.test.length > 1);
    assert.equal(depends_on, undefined);
  }
  const { command } = services.redis;
  assert.equal(command[command.indexOf("--maxmemory-policy") + 1], "noeviction");
});

test("every port is open to this machine alone, and every image has a version or is built here", () => {
  for (const [name, { ports = [], image, build }] of named) {
    for (const port of ports) assert.match(port, /^127\.0\.0\.1:/, name);
    assert.match(image, build === undefined ? /:v?\d/ : /^gangway(-\w+)?:compose$/, name);
  }
  assert.match(services.setup.build.dockerfile_inline, /^FROM alpine:\d+\.\d+$/m);
  for (const [, { build }] of own) assert.ok(existsSync(join(deploy, build.context, build.dockerfile)));
});

test("every service, volume and file that a service names exists, and no service waits for itself", () => {
  for (const [name, { depends_on = {}, volumes: used = [], network_mode = "" }] of named) {
    for (const other of Object.keys(depends_on)) assert.ok(other !== name && other in services, `${name}: ${other}`);
    for (const mount of used) {
      const [from = ""] = mount.split(":");
      assert.ok(from.startsWith("./") ? existsSync(join(deploy, from)) : from in volumes, mount);
    }
    if (network_mode !== "") assert.ok(network_mode.replace("service:", "") in depends_on, name);
  }
  assert.deepEqual(readdirSync(join(deploy, "compose")).sort(), [
    "access.yaml",
    "authentication.yaml",
    "dex.yaml",
    "setup.sh",
  ]);
});

test("the command line has every command, each role runs, and none serves insecurely", () => {
  const gangway = fileURLToPath(new URL("../../bin/gangway", import.meta.url));
  const roles: string[] = [];
  for (const [name, { command }] of own) {
    const [verb, ...args] = command as string[];
    const { status, stdout } = spawnSync(process.execPath, [gangway, verb ?? "", "--help"], { encoding: "utf8" });
    assert.equal(status, 0, name);
    for (const flag of args.filter((arg) => arg.startsWith("--"))) assert.match(stdout, new RegExp(`${flag}\\b`), flag);
    assert.ok(!args.includes("--insecure"), name);
    if (verb === "serve") roles.push(args[args.indexOf("--roles") + 1] ?? "");
  }
  assert.deepEqual(roles, ["api", "planner", "worker"]);
});

test("the issuer's settings agree with the service's, and its only user is the first admin", () => {
  const dex = settings("dex.yaml");
  const [trusted, ...others] = settings("authentication.yaml").issuers;
  assert.deepEqual([trusted.issuer, others], [dex.issuer, []]);
  const [client, ...clients] = dex.staticClients;
  assert.deepEqual([trusted.audiences, client.public, client.secret, clients], [[client.id], true, undefined, []]);
  const [user, ...users] = dex.staticPasswords;
  assert.deepEqual([trusted.subjectClaim, user.hash, users], ["email", "ADMIN_PASSWORD_HASH", []]);
  assert.deepEqual(
    settings("access.yaml").bindings.map(({ subject, role }: Doc) => [subject, role]),
    [[`${trusted.subjectPrefix}${user.email}`, "admin"]],
  );
  // The API reaches the issuer by the same address as a person's browser: its network is the issuer's.
  const { port, hostname } = new URL(dex.issuer);
  assert.equal(hostname, "localhost");
  assert.equal(services.api.network_mode, "service:issuer");
  assert.equal(dex.web.https, `0.0.0.0:${port}`);
  const listen = services.api.command.at(-1).split(":").at(-1);
  assert.deepEqual(
    services.issuer.ports,
    [port, listen].map((one) => `127.0.0.1:${one}:${one}`),
  );
});

describe("what setup makes", { skip: !hasOpenssl() && "needs openssl" }, () => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-compose-"));
  const made = join(folder, "setup");
  const HASH = "$2y$10$abcdefghijklmnopqrstuvABCDEFGHIJKLMNOPQRSTUVWXYZ01234";
  const setUp = () =>
    execFileSync("sh", [join(deploy, "compose/setup.sh"), made], {
      env: { ...process.env, PATH: `${folder}:${process.env["PATH"]}` },
      stdio: ["ignore", "pipe", "pipe"],
    });
  before(() => {
    execFileSync("mkdir", [made]);
    // The image has Apache's htpasswd, which this machine may lack. It prints USER:HASH.
    writeFileSync(
      join(folder, "htpasswd"),
      `#!/bin/sh\n[ "$*" = "-inBC 10 admin" ] && read -r _ && echo 'admin:${HASH}'\n`,
    );
    chmodSync(join(folder, "htpasswd"), 0o755);
    setUp();
  });
  after(() => rmSync(folder, { recursive: true }));

  const files = () =>
    Object.fromEntries(readdirSync(made).map((name) => [name, readFileSync(join(made, name), "utf8")]));

  test("is made once", () => {
    const before = files();
    setUp();
    assert.deepEqual(files(), before);
  });

  test("is a certificate for this machine, of an authority that signs nothing else", () => {
    const { "server.crt": server = "", "ca.crt": ca = "" } = files();
    const [certificate, authority] = [new X509Certificate(server), new X509Certificate(ca)];
    assert.ok(certificate.verify(authority.publicKey) && !certificate.ca && authority.ca);
    assert.equal(certificate.checkHost("localhost"), "localhost");
    assert.equal(certificate.checkIP("127.0.0.1"), "127.0.0.1");
  });

  test("is an admin's password that only root reads, and the issuer gets its hash", () => {
    const { "dex.yaml": dex = "", "admin.password": password = "" } = files();
    assert.equal(parse(dex).staticPasswords[0].hash, HASH);
    assert.match(password, /^[0-9a-f]{32}\n$/);
    assert.ok(!dex.includes(password.trim()));
    for (const secret of ["admin.password", "ca.key"]) assert.equal(statSync(join(made, secret)).mode & 0o077, 0);
    for (const [from, to] of Object.entries<string>({ tlsCert: "server.crt", tlsKey: "server.key" })) {
      assert.equal(mountedAt(services.issuer, parse(dex).web[from], made), join(made, to));
    }
    assert.equal(mountedAt(services.issuer, services.issuer.command.at(-1), made), join(made, "dex.yaml"));
  });

  test("lets every process start with its environment, and the API has TLS and known callers", () => {
    for (const [name, service] of own) {
      const env = Object.entries<string>(service.environment).map(([variable, value]) => {
        const path = mountedAt(service, value, made);
        assert.equal(path !== null, value.startsWith("/"), `${name}: ${variable} is mounted`);
        return [variable, path ?? value];
      });
      const config = readConfig("/", Object.fromEntries(env));
      assert.equal(config.credentialsKeys.current, "first", name);
      const { hostname } = new URL(config.database?.url ?? "");
      const redis = new URL(config.redis?.url ?? "").hostname;
      assert.deepEqual([hostname, redis], ["postgres", "redis"], name);
      if (name !== "api") continue;
      assert.deepEqual(
        lacking({ listen: service.command.at(-1), tls: config.tls, authenticates: authenticates(config) }),
        [],
      );
      const caFile = config.authentication.issuers[0]?.caFile ?? "";
      assert.equal(mountedAt(service, caFile, made), join(made, "ca.crt"));
    }
  });
});

const hasCompose = spawnSync("docker", ["compose", "version"]).status === 0;
test("compose takes the file", { skip: !hasCompose && "needs docker compose" }, () => {
  execFileSync("docker", ["compose", "-f", FILE, "config", "--quiet"]);
});
