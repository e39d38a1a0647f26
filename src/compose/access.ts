/** Connects the authentication of calls with the issuers that the configuration names, and their authorization. */
import { randomBytes } from "node:crypto";
import { createAccessAdmin } from "../access/access-admin.ts";
import { keepAudit } from "../access/audit-retention.ts";
import { createAuthenticate } from "../access/authenticate.ts";
import { followAccess } from "../access/followed-access.ts";
import type { IssuerKeys } from "../access/issuer-keys.ts";
import type { VerifyToken } from "../access/oidc.ts";
import { type RefusedCall, refusalLog } from "../access/refusals.ts";
import { createRobots, type RobotTokens } from "../access/robots.ts";
import type { AccessAdmin, Authorization } from "../api/ports.ts";
import type { Config } from "../config/config.ts";
import type { SettingsFile } from "../config/config-files.ts";
import { PEM_LIMIT } from "../config/config-tls.ts";
import { type AccessFile, NO_ACCESS_FILE } from "../core/access/access-file.ts";
import {
  type AuthenticationSettings,
  hasMethod,
  type IssuerSettings,
  type KubernetesSettings,
} from "../core/access/authentication-settings.ts";
import type { Authenticate } from "../core/access/identity.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { FollowedFiles } from "../runtime/follow-files.ts";
import { readBoundedFile } from "../runtime/read-bounded-file.ts";
import type { Telemetry } from "../telemetry/events.ts";
import { type Base, runLoops } from "./base.ts";
import { followSettings } from "./follow-settings.ts";
import { auditSettings } from "./settings-audit.ts";

/** True if the configuration makes the service ask callers for credentials. */
export function authenticates(config: Pick<Config, "tls" | "authentication">): boolean {
  return hasMethod(settingsOf(config));
}

/**
 * Follows the file of authentication: an issuer that is taken out of it is not trusted any more. Issuers that stay keep
 * the keys that were read. Loads the packages of a method only once the file asks for it.
 */
export async function connectAuthentication(
  config: Pick<Config, "tls" | "authentication" | "authenticationFile">,
  ports: AccessPorts,
  parts: AsyncDisposableStack,
): Promise<FollowedAuthentication> {
  const keys = new Map<string, KnownIssuer>();
  const connect = async (settings: AuthenticationSettings): Promise<Authenticate> => {
    const { issuers, kubernetes } = settings;
    return createAuthenticate(
      {
        clock: ports.clock,
        verifyToken: issuers.length === 0 ? notConfigured : await connectIssuers(issuers, ports, keys),
        reviewToken: kubernetes === null ? notConfigured : await connectReviews(kubernetes, ports),
        verifyRobot: ports.verifyRobot,
      },
      settingsOf({ ...config, authentication: settings }),
    );
  };
  let current = await connect(config.authentication);
  const file = config.authenticationFile;
  const following = followSettings(file && { ...file, parse: withMethods(config, file) }, config.authentication, {
    clock: ports.clock,
    onRead: async () => {
      current = await connect(following.now());
      ports.telemetry.authenticationFileRead({ file: file?.path ?? "" });
    },
    onError: (error) => ports.telemetry.loopFailed({ loop: "authentication file", error }),
  });
  runLoops(parts, following.run);
  await ports.audit(file, following);
  return { authenticate: (credentials) => current(credentials), settings: following.now };
}

export type FollowedAuthentication = {
  readonly authenticate: Authenticate;
  /** The settings that count now. */
  readonly settings: () => AuthenticationSettings;
};

/** Whether callers are judged is decided at the start: without authentication, every caller may do everything. */
function withMethods(
  config: Pick<Config, "tls" | "authentication">,
  { path, parse }: SettingsFile<AuthenticationSettings>,
): (text: string) => AuthenticationSettings {
  return (text) => {
    const settings = parse(text);
    if (hasMethod(settingsOf({ ...config, authentication: settings })) === authenticates(config)) return settings;
    throw new Error(`${path} turns authentication on or off, which needs a restart of the service`);
  };
}

type AccessPorts = {
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, "loopFailed" | "authenticationFileRead">;
  readonly verifyRobot: RobotTokens["verify"];
  /** Writes to the audit log what the file says, also when it changes. */
  readonly audit: (
    file: SettingsFile<AuthenticationSettings> | null,
    followed: FollowedFiles<AuthenticationSettings>,
  ) => Promise<void>;
};

/** Makes robots, and verifies their tokens, which expire by the machine's clock. */
export function connectRobots({ store, telemetry }: Pick<Base, "store" | "telemetry">): RobotTokens {
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "uses of robots", error });
  return createRobots({ clock: systemClock(), store: store.robots, randomBytes, onError });
}

/** Keeps roles and bindings in memory; decides by them if callers are known. Reads them before it returns. */
export async function connectAuthorization(
  { clock, store, telemetry, parts }: Pick<Base, "clock" | "store" | "telemetry" | "parts">,
  config: Pick<Config, "tls" | "authentication" | "accessFile" | "auditMs">,
): Promise<{ readonly authorization: Authorization | null; readonly access: AccessAdmin }> {
  const file = followAccessFile({ clock, telemetry, onRead: () => followed.refresh().catch(onError) }, config);
  const onAuditError = (error: unknown) => telemetry.loopFailed({ loop: "audit log", error });
  const { makeAuditPartitions: makePartitions, dropAuditPartition: dropPartition, pruneAudit: prune } = store.access;
  const retention = { clock, makePartitions, dropPartition, prune, onError: onAuditError };
  runLoops(parts, (signal) => keepAudit(retention, config.auditMs, signal));
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "roles and bindings", error });
  const followed = followAccess({ clock, store: store.access, file: file.now, onError });
  const enforces = authenticates(config);
  const admin = createAccessAdmin({ clock, store: store.access, access: followed, file: file.now, enforces });
  runLoops(parts, file.run);
  await auditSettings({ clock, store, telemetry, parts }, "GANGWAY_ACCESS_FILE", config.accessFile, file);
  if (!enforces) return { authorization: null, access: admin };
  await followed.refresh();
  runLoops(parts, followed.run);
  const refusals = refusalLog({
    clock,
    append: store.access.appendAudit,
    onError: onAuditError,
  });
  runLoops(parts, refusals.run);
  const onDenied = (refused: RefusedCall) => {
    telemetry.callDenied(refused);
    refusals.note(refused);
  };
  return { authorization: { ...followed, onDenied }, access: admin };
}

function followAccessFile(
  { clock, telemetry, onRead }: Pick<Base, "clock" | "telemetry"> & { readonly onRead: () => Promise<void> },
  { accessFile: file }: Pick<Config, "accessFile">,
): FollowedFiles<AccessFile> {
  return followSettings(file, NO_ACCESS_FILE, {
    clock,
    onRead: async () => {
      telemetry.accessFileRead({ file: file?.path ?? "" });
      await onRead();
    },
    onError: (error: unknown) => telemetry.loopFailed({ loop: "access file", error }),
  });
}

function settingsOf({ tls, authentication }: Pick<Config, "tls" | "authentication">) {
  return { ...authentication, certificates: tls !== null && tls.clients !== "none" };
}

const notConfigured = () => Promise.reject(new Error("the method is not configured"));

async function connectReviews({ kubeconfig, audience }: KubernetesSettings, { clock, telemetry }: AccessPorts) {
  const [{ inClusterKubeconfig, followedReviewer }, { readLocalFile }] = await Promise.all([
    import("../adapters/cluster/token-review.ts"),
    import("../adapters/cluster/kubeconfig-files.ts"),
  ]);
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "token reviews", error });
  const read = async () => (kubeconfig === null ? inClusterKubeconfig() : readLocalFile(kubeconfig));
  return followedReviewer(read, { clock, audience, onError });
}

/** The keys of an issuer, and the authorities that it was asked with when the settings were read. */
type KnownIssuer = { readonly ca: string | null; readonly keys: IssuerKeys };

/** `known`: the keys of issuers by their names, which stay for the same authorities. */
async function connectIssuers(
  issuers: readonly IssuerSettings[],
  { clock, telemetry }: AccessPorts,
  known: Map<string, KnownIssuer>,
): Promise<VerifyToken> {
  const [{ issuerKeys: follow }, { oidcVerifier }] = await Promise.all([
    import("../access/issuer-keys.ts"),
    import("../access/oidc.ts"),
  ]);
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "issuer keys", error });
  const read = new Map<string, KnownIssuer>();
  for (const { issuer, caFile } of issuers) {
    const readCa = caFile === null ? null : () => readBoundedFile(caFile, PEM_LIMIT);
    const ca = readCa === null ? null : await readCa();
    const before = known.get(issuer);
    read.set(issuer, before?.ca === ca ? before : { ca, keys: follow({ issuer, ca: readCa, clock, onError }) });
  }
  known.clear();
  for (const [issuer, keys] of read) known.set(issuer, keys);
  return oidcVerifier(({ issuer }) => {
    const found = read.get(issuer);
    if (found === undefined) throw new Error(`issuer ${issuer} is not configured`);
    return found.keys;
  }, clock);
}
