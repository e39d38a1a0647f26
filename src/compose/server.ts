/** Connects intake, watch and the API in front of them. */
import { getRandomValues } from "node:crypto";
import { SEQUENCER_LEASE } from "../adapters/store/fleet/leases.ts";
import { lacking } from "../api/exposure.ts";
import { type Api, startApi } from "../api/server.ts";
import type { WebListen } from "../api/web/open-web.ts";
import type { Config } from "../config/config.ts";
import { readSettingsAgain } from "../config/config-files.ts";
import { followPodConfig } from "../intake/follow-pod-config.ts";
import { createIntake } from "../intake/intake.ts";
import { systemClock } from "../runtime/clock.ts";
import type { ServerTls } from "../runtime/server-tls.ts";
import { createPruner } from "../watch/pruner.ts";
import { createWatch } from "../watch/watch.ts";
import { connectAuthentication, connectAuthorization, connectRobots } from "./access.ts";
import { type Base, runLoops } from "./base.ts";
import { connectCallLimits } from "./call-limits.ts";
import type { FollowedClusters } from "./clusters.ts";
import { sayInsecure } from "./insecure.ts";
import { startQuestions } from "./questions.ts";
import { connectSessions } from "./sessions.ts";
import { auditSettings } from "./settings-audit.ts";
import type { Quota } from "./tokens.ts";

/** Starts intake, watch with its sequencer, and the server in front of them. */
export async function startServer(
  base: Base,
  { clusters, admin, keys }: FollowedClusters,
  quota: Quota,
  options: {
    readonly listen: string | null;
    readonly insecure: boolean;
    readonly tls: ServerTls | null;
    readonly authenticates: boolean;
    readonly web: WebListen | null;
  },
  config: Config,
): Promise<Api> {
  const { clock, kinds, store, namespaceRules, telemetry, instrumentation, tell, heard, member, parts } = base;
  const lease = member.lease(SEQUENCER_LEASE, () => watch.hint());
  const watch = createWatch(
    {
      clock,
      store: instrumentation.watchStore(store.watch),
      lease,
      onGiven: tell.appended,
      onBegunAnew: telemetry.logBegunAnew,
    },
    telemetry,
  );
  heard.appended = watch.hint;
  runLoops(parts, watch.run, createPruner({ clock, store: store.watch, lease }, telemetry).run);
  const random = (count: number) => getRandomValues(new Uint8Array(count));
  const wakes = { wakePlanner: tell.planner, wakeJob: tell.job };
  const podConfig = followPodConfig({ clock, telemetry, readFile: readSettingsAgain }, config);
  runLoops(parts, podConfig.run);
  const intakePorts = { ...wakes, namespaceRules, podConfig: podConfig.now, ...instrumentation.intakePorts };
  const intake = createIntake({ clock, kinds, store: store.intake, randomBytes: random, ...intakePorts });
  const robots = connectRobots(base);
  // Credentials name times of the clock on the wall, which their issuers and this machine share.
  const wallClock = systemClock();
  const authentication = await connectAuthentication(
    config,
    {
      clock: wallClock,
      telemetry,
      verifyRobot: robots.verify,
      audit: (file, followed) => auditSettings(base, "GANGWAY_AUTHENTICATION_FILE", file, followed),
    },
    parts,
  );
  const { authenticate, logins } = options.authenticates
    ? connectSessions(base, authentication, { clock: wallClock, keys })
    : { ...authentication, logins: null };
  const api = await startApi(
    {
      kinds,
      intake: instrumentation.intake(intake),
      ...startQuestions(base),
      watch,
      admin: store.admin,
      priorityClasses: store.priorityClasses,
      runtimes: store.runtimes,
      namespaceRules,
      clusters: admin,
      resources: quota.manager,
      logs: clusters.logs,
      pods: clusters.pods,
      logTemplates: () => podConfig.now().logs,
      limitsChanged: quota.limitsChanged,
      wakePlanner: tell.planner,
      robots,
      ...(await connectAuthorization(base, config)),
      authenticate,
      logins,
      limits: await connectCallLimits(base, config),
      requestBeyondLimit: telemetry.requestBeyondLimit,
      requestTurnedAway: (reason) => telemetry.requestTurnedAway({ reason }),
      callRefused: (method) => telemetry.callRefused({ method }),
      clock,
      onInternalError: (reference, error) => telemetry.callFailed({ reference, error }),
      ...instrumentation.apiPorts,
    },
    { ...options, listen: options.listen ?? config.listen, bounds: config.connectionBounds, drainMs: config.drainMs },
  );
  parts.defer(() => api.close());
  const { web } = api;
  const addresses = [api.address, ...(web.kind === "serves" ? [web.address] : [])];
  for (const address of addresses) {
    const lacks = lacking({ ...options, listen: address });
    if (lacks.length > 0) runLoops(parts, (signal) => sayInsecure({ address, lacks }, base, signal));
  }
  if (web.kind === "serves") instrumentation.consoleConnections(web.connections);
  quota.startReports();
  return api;
}
