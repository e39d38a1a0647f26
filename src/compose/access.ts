/** Connects the authentication of calls with the issuers that the configuration names. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createAuthenticate } from "../access/authenticate.ts";
import type { VerifyToken } from "../access/oidc.ts";
import { createRobots, type RobotTokens } from "../access/robots.ts";
import type { Config } from "../config.ts";
import { hasMethod, type IssuerSettings, type KubernetesSettings } from "../core/access/authentication-settings.ts";
import type { Authenticate } from "../core/access/identity.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Telemetry } from "../telemetry/events.ts";
import type { Base } from "./base.ts";

/** True if the configuration makes the service ask callers for credentials. */
export function authenticates(config: Pick<Config, "tls" | "authentication">): boolean {
  return hasMethod(settingsOf(config));
}

/** Loads the packages of a method only if the configuration asks for it. */
export async function connectAuthentication(
  config: Pick<Config, "tls" | "authentication">,
  ports: AccessPorts,
): Promise<Authenticate> {
  const { issuers, kubernetes } = config.authentication;
  return createAuthenticate(
    {
      clock: ports.clock,
      verifyToken: issuers.length === 0 ? notConfigured : await connectIssuers(issuers, ports),
      reviewToken: kubernetes === null ? notConfigured : await connectReviews(kubernetes, ports),
      verifyRobot: ports.verifyRobot,
    },
    settingsOf(config),
  );
}

type AccessPorts = {
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, "loopFailed">;
  readonly verifyRobot: RobotTokens["verify"];
};

/** Makes robots, and verifies their tokens. */
export function connectRobots({ clock, store, telemetry }: Pick<Base, "clock" | "store" | "telemetry">): RobotTokens {
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "uses of robots", error });
  return createRobots({ clock, store: store.robots, randomBytes, onError });
}

function settingsOf({ tls, authentication }: Pick<Config, "tls" | "authentication">) {
  return { ...authentication, certificates: tls !== null && tls.clients !== "none" };
}

const notConfigured = () => Promise.reject(new Error("the method is not configured"));

async function connectReviews({ kubeconfig, audience }: KubernetesSettings, { telemetry }: AccessPorts) {
  const { inClusterKubeconfig, tokenReviewer } = await import("../adapters/cluster/token-review.ts");
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "token reviews", error });
  return tokenReviewer(kubeconfig === null ? inClusterKubeconfig() : await readFile(kubeconfig, "utf8"), {
    audience,
    onError,
  });
}

async function connectIssuers(
  issuers: readonly IssuerSettings[],
  { clock, telemetry }: AccessPorts,
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
