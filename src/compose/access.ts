/** Connects the authentication of calls with the issuers that the configuration names. */
import { readFile } from "node:fs/promises";
import { createAuthenticate } from "../access/authenticate.ts";
import type { VerifyToken } from "../access/oidc.ts";
import type { Config } from "../config.ts";
import type { IssuerSettings } from "../core/access/authentication-settings.ts";
import { hasMethod } from "../core/access/authentication-settings.ts";
import type { Authenticate } from "../core/access/identity.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Telemetry } from "../telemetry/events.ts";

/** True if the configuration makes the service ask callers for credentials. */
export function authenticates(config: Pick<Config, "tls" | "authentication">): boolean {
  return hasMethod(settingsOf(config));
}

/** Loads the packages of a method only if the configuration asks for it. */
export async function connectAuthentication(
  config: Pick<Config, "tls" | "authentication">,
  ports: { readonly clock: Clock; readonly telemetry: Pick<Telemetry, "loopFailed"> },
): Promise<Authenticate> {
  const { issuers } = config.authentication;
  const verifyToken: VerifyToken = issuers.length === 0 ? noIssuers : await connectIssuers(issuers, ports);
  return createAuthenticate({ clock: ports.clock, verifyToken }, settingsOf(config));
}

function settingsOf({ tls, authentication }: Pick<Config, "tls" | "authentication">) {
  return { ...authentication, certificates: tls !== null && tls.clients !== "none" };
}

const noIssuers: VerifyToken = () => Promise.reject(new Error("no issuer is configured"));

async function connectIssuers(
  issuers: readonly IssuerSettings[],
  { clock, telemetry }: Parameters<typeof connectAuthentication>[1],
): Promise<VerifyToken> {
  const [{ issuerKeys }, { oidcVerifier }] = await Promise.all([
    import("../access/issuer-keys.ts"),
    import("../access/oidc.ts"),
  ]);
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "issuer keys", error });
  const keys = new Map<string, ReturnType<typeof issuerKeys>>();
  for (const { issuer, caFile } of issuers) {
    const ca = caFile === null ? null : await readFile(caFile, "utf8");
    keys.set(issuer, issuerKeys({ issuer, ca, clock, onError }));
  }
  return oidcVerifier(({ issuer }) => {
    const known = keys.get(issuer);
    if (known === undefined) throw new Error(`issuer ${issuer} is not configured`);
    return known;
  }, clock);
}
