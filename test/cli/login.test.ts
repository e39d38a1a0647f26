/** Logins by the device flow of a real issuer of OpenID Connect. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Provider } from "oidc-provider";
import { configFileAt } from "../../src/cli/auth/config-file.ts";
import { loginFrom } from "../../src/cli/auth/login.ts";
import { ANONYMOUS } from "../../src/core/access/identity.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { startFixture } from "../api/fixture.ts";
import { run, type World } from "./harness.ts";

const SCOPE = "openid offline_access";

/** An issuer whose people agree to a code as `ann`, or refuse it. */
async function startProvider(t: TestContext) {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const grants = ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"];
  const provider = new Provider(issuer, {
    clients: [
      {
        ...{ client_id: "gangway", token_endpoint_auth_method: "none", application_type: "native" },
        ...{ grant_types: grants, redirect_uris: [], response_types: [] },
      },
    ],
    features: { deviceFlow: { enabled: true }, revocation: { enabled: true }, devInteractions: { enabled: false } },
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    rotateRefreshToken: true,
  });
  server.on("request", provider.callback());
  const agree = async (userCode: string) => {
    const code = await provider.DeviceCode.findByUserCode(userCode.replaceAll("-", ""));
    assert.ok(code !== undefined, userCode);
    const grant = new provider.Grant({ accountId: "ann", clientId: "gangway" });
    grant.addOIDCScope(SCOPE);
    const grantId = await grant.save();
    Object.assign(code, { accountId: "ann", grantId, scope: SCOPE, authTime: Math.floor(Date.now() / 1000) });
    await code.save();
  };
  return { issuer, agree };
}

/** The command line with a context for a service that shows what token it gets. */
async function arrange(t: TestContext) {
  const shown: string[] = [];
  const { api } = await startFixture(t, {
    authenticate: async ({ authorization }) => {
      shown.push(...authorization);
      return { kind: "identity", identity: ANONYMOUS };
    },
  });
  const folder = mkdtempSync(join(tmpdir(), "gangway-login-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const world: World = {
    configFile: configFileAt(join(folder, "config.yaml")),
    readFile: (path) => readFile(path, "utf8"),
    writePrivateFile: (path, text) => configFileAt(path).write(text),
    removeFile: (path) => rm(path),
  };
  const gangway = (line: string, more: World = {}) => run(line.split(" "), { ...world, ...more });
  assert.equal((await gangway(`context set prod --address ${api.address}`)).exitCode, 0);
  return { shown, gangway, path: join(folder, "logins", "prod.json") };
}

test("a person logs in, the token is renewed before it expires, and the logout leaves nothing of it", async (t) => {
  const { issuer, agree } = await startProvider(t);
  const { shown, gangway, path } = await arrange(t);
  const onOutput = (text: string) => {
    const code = /shows the code (\S+)/.exec(text)?.[1];
    if (code !== undefined) void agree(code);
  };
  const login = await gangway(`login --issuer ${issuer} --client-id gangway`, { onOutput });
  assert.equal(login.stdout, `logged in at ${issuer} as ann; context prod shows your token\n`, login.stderr);
  assert.match(login.stderr, new RegExp(`^open ${issuer}/device\\?user_code=`));
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const first = loginFrom(readFileSync(path, "utf8"));
  assert.ok(first !== null && first.refreshToken !== null);
  for (const { stdout, stderr } of [login, await gangway("context list")]) {
    assert.ok(!`${stdout}${stderr}`.includes(first.idToken.slice(0, 20)), "no token is printed");
  }

  assert.equal((await gangway("list")).stderr, "no jobs\n");
  assert.deepEqual(shown, [`Bearer ${first.idToken}`]);

  const later: World = { clock: { ...systemClock(), nowMs: () => Date.now() + 2 * 3_600_000 } };
  assert.equal((await gangway("list", later)).stderr, "no jobs\n");
  const second = loginFrom(readFileSync(path, "utf8"));
  assert.ok(second !== null && second.refreshToken !== first.refreshToken);
  assert.equal(shown.at(-1), `Bearer ${second.idToken}`);

  const again = await gangway("login", { onOutput });
  assert.match(again.stdout, /logged in at .* as ann/, "issuer and client are those of the last login");
  const { stdout, exitCode } = await gangway("logout");
  assert.deepEqual([stdout, exitCode, existsSync(path)], ["logged out of context prod\n", 0, false]);
  shown.length = 0;
  assert.equal((await gangway("list")).stderr, "no jobs\n");
  assert.deepEqual(shown, []);
});

test("a login that has ended, or that cannot begin, is told without a stack", async (t) => {
  const { issuer } = await startProvider(t);
  const { gangway, path } = await arrange(t);
  const cases: readonly (readonly [string, number, RegExp])[] = [
    ["login", 2, /context prod has no login yet: give --issuer and --client-id/],
    ["logout", 2, /context prod has no login/],
    ["login --issuer login.example.com --client-id a", 2, /--issuer must be a URL with https/],
    ["login --issuer http://login.example.com --client-id a", 2, /--issuer must be a URL with https/],
    ["login --issuer http://127.0.0.1:1 --client-id a", 3, /no login at http:\/\/127\.0\.0\.1:1: /],
    [`login --issuer ${issuer} --client-id stranger`, 3, /no login at .*: client authentication failed/],
    [`--context other login --issuer ${issuer} --client-id gangway`, 2, /there is no context other/],
  ];
  for (const [line, exitCode, message] of cases) {
    const ran = await gangway(line);
    assert.deepEqual([line, ran.exitCode, ran.stdout], [line, exitCode, ""], ran.stderr);
    assert.match(ran.stderr, message);
    assert.ok(!existsSync(path));
  }
  const at = { issuer, clientId: "gangway", scope: SCOPE };
  await configFileAt(path).write(JSON.stringify({ ...at, idToken: "a.e30.b", refreshToken: "unknown" }));
  const refused = await gangway(`list --token-file ${path}`);
  assert.deepEqual([refused.exitCode, refused.stdout], [3, ""]);
  assert.match(refused.stderr, /no login at .*: .*(grant|token).*\n"gangway login" begins a new login/);
  assert.ok(!refused.stderr.includes("unknown"));
  await configFileAt(path).write("{}");
  const { stderr } = await gangway(`list --token-file ${path}`);
  assert.match(stderr, /is no login: begin one with "gangway login --issuer URL --client-id ID"/);
});
