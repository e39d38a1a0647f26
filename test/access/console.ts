/** A service at which browsers log in: a real issuer, sessions in a database, and the listener over HTTP. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { openTokens } from "../../src/access/sessions.ts";
import type { Db } from "../../src/adapters/store/db/db.ts";
import type { WebListen } from "../../src/api/web/open-web.ts";
import { connectAuthentication } from "../../src/compose/access.ts";
import { connectSessions } from "../../src/compose/sessions.ts";
import { readConfig } from "../../src/config/config.ts";
import { type LimitCalls, NO_CALL_LIMITS } from "../../src/core/access/call-limits.ts";
import type { SessionRecord } from "../../src/core/access/console-session.ts";
import type { Authenticate } from "../../src/core/access/identity.ts";
import { onlyDefault } from "../../src/core/admin/credential-keys.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { callJson, startWebFixture } from "../api/web/http.ts";
import { freshStore } from "../store/db.ts";
import { TestBrowser } from "../support/browser.ts";
import { CLIENT, startLoginProvider } from "../support/login-provider.ts";
import { memoryRobots } from "../support/memory-robots.ts";
import { freePort } from "../support/redis-server.ts";

const LOOK_MS = 5_000;

type ConsoleParts = {
  /** Null: the service has no key. */
  readonly key?: Buffer | null;
  /** Processes that renew sessions. One of them serves. */
  readonly processes?: number;
  readonly console?: object | null;
  /** The page of the console. Omitted: there is none. */
  readonly page?: NonNullable<WebListen["page"]>;
  readonly limits?: LimitCalls;
};

/** `passes`: moves the wall clock of the service. Loops look again at once. */
export async function startConsole(t: TestContext, db: Db, of: ConsoleParts = {}) {
  const { key = Buffer.alloc(32, 7), processes = 1, console: more = {}, page = null, limits = NO_CALL_LIMITS } = of;
  const origin = `http://127.0.0.1:${await freePort()}`;
  const provider = await startLoginProvider(t, origin);
  const folder = mkdtempSync(join(tmpdir(), "gangway-console-"));
  const parts = new AsyncDisposableStack();
  t.after(async () => {
    await parts.disposeAsync();
    rmSync(folder, { recursive: true });
  });
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const at = { url: origin, issuer: provider.issuer, clientId: CLIENT.id, scopes: ["openid"] };
  const settings = {
    issuers: [{ issuer: provider.issuer, audiences: [CLIENT.id], subjectPrefix: "login:", groupsClaim: "groups" }],
    robots: true,
    console: { ...at, clientSecretFile: file("secret", `${CLIENT.secret}\n`), ...more },
  };
  const { console: _, ...without } = settings;
  const text = JSON.stringify(more === null ? without : settings);
  const config = readConfig("/", { GANGWAY_AUTHENTICATION_FILE: file("authentication.yaml", text) });
  let passedMs = 0;
  const real = systemClock();
  const clock = {
    ...real,
    nowMs: () => real.nowMs() + passedMs,
    monotonicMs: () => real.monotonicMs() + passedMs,
    sleep: (ms: number, signal?: AbortSignal) => real.sleep(ms === LOOK_MS ? 20 : ms, signal),
  };
  const log: string[] = [];
  const telemetry = {
    loopFailed: ({ loop, error }: { loop: string; error: unknown }) => void log.push(`${loop}: ${error}`),
    authenticationFileRead: () => {},
    sessionBegun: ({ subject, method }: { subject: string; method: string }) =>
      void log.push(`${subject} by ${method}`),
    sessionEnded: ({ subject, why }: { subject: string; why: string }) => void log.push(`${subject}: ${why}`),
  };
  const robots = memoryRobots(clock);
  const { store } = await freshStore(db);
  const ports = { clock, telemetry, audit: async () => {}, verifyRobot: robots.verify };
  const authentication = await connectAuthentication(config, ports, parts);
  const connected = Array.from({ length: processes }, () =>
    connectSessions({ store, telemetry, parts, warnings: [] }, authentication, { clock, keys: () => onlyDefault(key) }),
  );
  const [first] = connected;
  if (first === undefined) throw new Error("no process serves");
  const judged: string[] = [];
  const authenticate: Authenticate = async (credentials) => {
    const answer = await first.authenticate(credentials);
    judged.push(answer.kind);
    return answer;
  };
  const web = { listen: new URL(origin).host, page };
  const { url } = await startWebFixture(t, { ports: { authenticate, logins: first.logins, clock, limits }, web });
  const made = await robots.make({ ...ROBOT, ttlMs: 3_600_000 });
  if (made.kind !== "made") throw new Error(made.kind);
  return {
    ...{ url, origin, provider, db, store, log, judged, robotToken: made.secret },
    passes: (ms: number) => {
      passedMs += ms;
    },
    postToken: (browser: TestBrowser, token: unknown, headers: Readonly<Record<string, string>> = {}) =>
      browser.send(`${url}/auth/token`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof token === "string" ? JSON.stringify({ token }) : JSON.stringify(token),
      }),
    /** Logs a browser in at the issuer. */
    logIn: async (browser = new TestBrowser(), to = "/openapi.json") => {
      const { response } = await browser.open(`${url}/auth/login?to=${encodeURIComponent(to)}`);
      const text = await response?.text();
      if (response?.status !== 200 || text === undefined) throw new Error(`${response?.status}: ${text}`);
      return browser;
    },
    /** The token that the only session has now. */
    tokenOf: async () => {
      const [row] = await db.query<SessionRecord>(`select id_hash as "idHash", tokens from console_sessions`);
      return (row && openTokens(row, onlyDefault(key))?.token) ?? "";
    },
    /** Begins a login, and returns the address at which the browser comes back from the issuer. */
    goToIssuer: async (browser: TestBrowser, to = "/") => {
      const isCallback = (at: string) => at.startsWith(`${url}/auth/callback?`);
      return (await browser.open(`${url}/auth/login?to=${encodeURIComponent(to)}`, isCallback)).url;
    },
    whoAmI: (browser: TestBrowser, headers: Readonly<Record<string, string>> = {}) => {
      const cookie = [...browser.cookies(url)].map(([name, value]) => `${name}=${value}`).join("; ");
      return callJson(url, "AccessService/WhoAmI", {}, { cookie, ...headers });
    },
    watchJobs: (browser: TestBrowser, signal: AbortSignal) => {
      const cookie = [...browser.cookies(url)].map(([name, value]) => `${name}=${value}`).join("; ");
      const transport = createConnectTransport({
        ...{ baseUrl: url, httpVersion: "1.1" },
        interceptors: [
          (next) => (request) => {
            request.header.set("cookie", cookie);
            return next(request);
          },
        ],
      });
      return createClient(JobService, transport).watchJobs({}, { signal })[Symbol.asyncIterator]();
    },
  };
}

const ROBOT = { name: "ci", owner: "test", scope: { kind: "installation", name: "" }, ownedMax: null } as const;
