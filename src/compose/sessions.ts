/** Connects the sessions of browsers with the issuer at which people log in. */
import { randomBytes } from "node:crypto";
import { createLogin, type LoginProvider } from "../access/login.ts";
import type { ProviderPorts } from "../access/login-provider.ts";
import { createRenewal } from "../access/renew-sessions.ts";
import { createSessions } from "../access/sessions.ts";
import type { Logins } from "../api/ports.ts";
import { PEM_LIMIT } from "../config/config-tls.ts";
import type { AuthenticationSettings } from "../core/access/authentication-settings.ts";
import { type LoginRenewal, SESSION_HOURS } from "../core/access/console-session.ts";
import type { ConsoleSettings } from "../core/access/console-settings.ts";
import type { Authenticate } from "../core/access/identity.ts";
import { type CredentialKeys, currentKey } from "../core/admin/credential-keys.ts";
import type { Clock } from "../runtime/clock.ts";
import { readBoundedFile } from "../runtime/read-bounded-file.ts";
import type { FollowedAuthentication } from "./access.ts";
import { type Base, runLoops } from "./base.ts";

const HOUR_MS = 3_600_000;
const LACKS_KEY = "nobody can log in with a browser: no key encrypts sessions; set GANGWAY_CREDENTIALS_KEY";
/** More than any secret of a client has. */
const SECRET_LIMIT = { bytesMax: 16 * 1024 };

type SessionBase = Pick<Base, "parts" | "warnings"> & {
  readonly store: Pick<Base["store"], "sessions">;
  readonly telemetry: Pick<Base["telemetry"], "loopFailed" | "sessionBegun" | "sessionEnded">;
};

/** Keeps sessions, and renews their tokens until the parts are closed. `authenticate` judges calls that show one. */
export function connectSessions(
  { store, telemetry, parts, warnings }: SessionBase,
  { authenticate: judge, settings }: FollowedAuthentication,
  { clock, keys }: { readonly clock: Clock; readonly keys: () => CredentialKeys },
): { readonly authenticate: Authenticate; readonly logins: Logins } {
  const failed = (loop: string) => (error: unknown) => telemetry.loopFailed({ loop, error });
  const common = { clock, store: store.sessions, keys };
  const sessions = createSessions({ ...common, randomBytes, authenticate: judge });
  const provider = followProvider(settings, { clock, onError: failed("logins at the issuer") });
  const login = createLogin({ ...common, randomBytes, settings: () => settings().console, provider });
  const providerOf = async ({ issuer }: LoginRenewal) => {
    const at = settings().console;
    return at?.issuer === issuer ? provider(at) : null;
  };
  const revoke = async (of: LoginRenewal) => (await providerOf(of))?.revoke(of.refreshToken);
  const renewal = createRenewal({
    ...common,
    authenticate: judge,
    revoke,
    renew: async (of) => {
      const known = await providerOf(of);
      return (await known?.renew(of.refreshToken)) ?? { kind: "refused", why: "nobody logs in at its issuer any more" };
    },
    onEnded: telemetry.sessionEnded,
    onError: failed("renewal of sessions"),
  });
  runLoops(parts, renewal.run);
  const lacksKey = () => settings().console !== null && currentKey(keys()) === null;
  warnings.push(() => (lacksKey() ? [LACKS_KEY] : []));
  const logins: Logins = {
    offered: () => ({
      token: settings().robots || settings().kubernetes !== null || settings().issuers.length > 0,
      issuer: settings().console?.issuer ?? null,
      hasKey: currentKey(keys()) !== null,
      isSecure: settings().console?.origin.startsWith("https:") === true,
    }),
    async begin(caller, tokens, peer) {
      const lifeMs = Math.ceil((settings().console?.sessionHours ?? SESSION_HOURS) * HOUR_MS);
      const begun = await sessions.begin(caller, tokens, lifeMs);
      if (begun.kind === "begun") telemetry.sessionBegun({ subject: caller.subject, method: caller.method, peer });
      return begun;
    },
    ...login,
    async end(secret, why) {
      const ended = await sessions.end(secret);
      if (ended === null) return;
      telemetry.sessionEnded({ subject: ended.subject, why });
      const renewed = ended.tokens?.renewal ?? null;
      if (renewed !== null) revoke(renewed).catch(failed("revocation of tokens"));
    },
  };
  return { authenticate: sessions.authenticate, logins };
}

/** Keeps what is known of the issuer while the settings stay. Its package is loaded by the first login. */
function followProvider(
  settings: () => AuthenticationSettings,
  ports: Pick<ProviderPorts, "clock" | "onError">,
): (at: ConsoleSettings) => Promise<LoginProvider> {
  let known: { readonly of: string; readonly provider: Promise<LoginProvider> } | null = null;
  return (at) => {
    const caFile = settings().issuers.find(({ issuer }) => issuer === at.issuer)?.caFile ?? null;
    const of = JSON.stringify([at, caFile]);
    if (known?.of !== of) known = { of, provider: connectProvider(at, { ...ports, caFile }) };
    return known.provider;
  };
}

async function connectProvider(
  at: ConsoleSettings,
  { caFile, ...ports }: Pick<ProviderPorts, "clock" | "onError"> & { readonly caFile: string | null },
): Promise<LoginProvider> {
  const { createProvider } = await import("../access/login-provider.ts");
  const { clientSecretFile: secretFile } = at;
  return createProvider(at, {
    ...ports,
    readCa: caFile === null ? null : () => readBoundedFile(caFile, PEM_LIMIT),
    readSecret: secretFile === null ? null : () => readBoundedFile(secretFile, SECRET_LIMIT),
  });
}
