import { randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Client, type ClientReadableStream, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { CONNECTION_BOUNDS } from "../../src/api/connection-bounds.ts";
import type { ForeseeJob, JobLogs } from "../../src/api/ports.ts";
import { type ApiPorts, startApi } from "../../src/api/server.ts";
import type { WebListen } from "../../src/api/web/open-web.ts";
import { NO_CALL_LIMITS } from "../../src/core/access/call-limits.ts";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from "../../src/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.ts";
import { createIntake } from "../../src/intake/intake.ts";
import { createForesight } from "../../src/planner/foresight.ts";
import { createSimulator } from "../../src/planner/simulator.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { ServerTls } from "../../src/runtime/server-tls.ts";
import { anonymous } from "../support/anonymous.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { memoryRobots } from "../support/memory-robots.ts";
import { snapshotFleet } from "../support/snapshot-fleet.ts";
import { MemoryResources } from "./memory-resources.ts";
import { MemoryStore } from "./memory-store.ts";
import { startBridge } from "./web/bridge.ts";
import { ANY_WEB } from "./web/listen.ts";

/** An error as a client reads it: the standard details, and their size. */
export type Refusal = {
  readonly code: string;
  readonly message: string;
  readonly fields: readonly { readonly field: string; readonly description: string }[];
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly resource: string;
  readonly precondition: string;
  readonly quota: { readonly subject: string; readonly description: string } | null;
  readonly retries: boolean;
  readonly detailBytes: number;
};

export type Outcome<T> = { readonly ok: T; readonly error: null } | { readonly ok: null; readonly error: Refusal };

type MethodOf<Input extends DescMessage, Output extends DescMessage> = DescMethod & { input: Input; output: Output };

/** True if the clients of fixtures send their calls over HTTP. */
export const CALLS_OVER_HTTP = process.env["GANGWAY_TEST_API"] === "http";

/**
 * A served API over stores in memory, a client, and the internal errors that the client does not see. With
 * `GANGWAY_TEST_API=http` the client's calls go over HTTP, in JSON: `web/through-http.test.ts` runs files like that.
 */
export async function startFixture(
  t: Pick<TestContext, "after">,
  overrides: Partial<ApiPorts> = {},
  bounds = CONNECTION_BOUNDS,
  tls: ServerTls | null = null,
  web: WebListen | null = null,
) {
  const store = new MemoryStore();
  const clock = systemClock();
  const woken = { planner: 0, jobs: [] as string[] };
  const internal: unknown[] = [];
  const wakePlanner = () => {
    woken.planner++;
  };
  const wakeJob = (uid: string) => void woken.jobs.push(uid);
  const intake = createIntake({ clock, kinds: OWN_KINDS, store: store.intakeStore, randomBytes, wakePlanner, wakeJob });
  const { reads, watch, admin, priorityClasses, runtimes, clusterAdmin: clusters } = store;
  const onInternalError = (_reference: string, cause: unknown) => void internal.push(cause);
  const logs: JobLogs = { look: async () => ({ kind: "absent" }), open: () => Promise.reject(new Error("no log")) };
  const resources = new MemoryResources(wakePlanner);
  const fleet = snapshotFleet(store.snapshot, clock.nowMs);
  const foresight = createForesight({ clock, fleet });
  const ports = {
    kinds: OWN_KINDS,
    resources,
    intake,
    reads,
    simulate: createSimulator({ kinds: OWN_KINDS, fleet, firstWaiting: store.firstWaiting }),
    // Most tests have no cluster, and are not about that.
    foresee: (async (...asked) => (store.clusters.size === 0 ? null : foresight(...asked))) satisfies ForeseeJob,
    watch,
    admin,
    priorityClasses,
    runtimes,
    clusters,
    logs,
    pods: { ofJob: async () => null },
    limitsChanged: async () => wakePlanner(),
    wakePlanner,
    authenticate: anonymous,
    limits: NO_CALL_LIMITS,
    authorization: null,
    access: memoryAccess().admin,
    robots: memoryRobots(),
    clock,
    onInternalError,
    ...overrides,
  };
  const options = { listen: "127.0.0.1:0", insecure: false, tls, authenticates: false, bounds };
  const isOverHttp = CALLS_OVER_HTTP && tls === null && web === null;
  const api = await startApi(ports, { ...options, web: isOverHttp ? ANY_WEB : web });
  const bridge = isOverHttp && api.web.kind === "serves" ? await startBridge(api.web.url, api.address) : null;
  const address = bridge?.address ?? api.address;
  const client = new Client(address, credentials.createInsecure());
  t.after(async () => {
    client.close();
    bridge?.close();
    await api.close();
  });
  return { store, resources, api: { ...api, address }, client, woken, internal, ...callsOf(client) };
}

export function callsOf(client: Client) {
  /** Sends bytes that need not be a valid message. */
  const sendBytes = <I extends DescMessage, O extends DescMessage>(
    method: MethodOf<I, O>,
    bytes: Uint8Array,
    deadlineMs = 120_000,
  ): Promise<Outcome<MessageShape<O>>> =>
    new Promise((resolve) => {
      client.makeUnaryRequest(
        pathOf(method),
        (sent: Uint8Array) => Buffer.from(sent),
        (received: Buffer) => fromBinary(method.output, received),
        bytes,
        { deadline: Date.now() + deadlineMs },
        (error, response) => {
          if (error) resolve({ ok: null, error: readRefusal(error) });
          else resolve({ ok: response as MessageShape<O>, error: null });
        },
      );
    });
  const call = <I extends DescMessage, O extends DescMessage>(method: MethodOf<I, O>, request: MessageInitShape<I>) =>
    sendBytes(method, toBinary(method.input, create(method.input, request)));
  const stream = <I extends DescMessage, O extends DescMessage>(
    method: MethodOf<I, O>,
    request: MessageInitShape<I>,
  ): ClientReadableStream<MessageShape<O>> =>
    client.makeServerStreamRequest(
      pathOf(method),
      (sent: MessageShape<I>) => Buffer.from(toBinary(method.input, sent)),
      (received: Buffer) => fromBinary(method.output, received),
      create(method.input, request),
    );
  const bidi = <I extends DescMessage, O extends DescMessage>(method: MethodOf<I, O>) =>
    client.makeBidiStreamRequest(
      pathOf(method),
      (sent: MessageShape<I>) => Buffer.from(toBinary(method.input, sent)),
      (received: Buffer) => fromBinary(method.output, received),
    );
  return { call, sendBytes, stream, bidi };
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

export function readRefusal(error: ServiceError): Refusal {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  const details = bytes === undefined ? [] : fromBinary(StatusSchema, bytes as Buffer).details;
  const detail = <Desc extends DescMessage>(schema: Desc) =>
    details.map((any) => anyUnpack(any, schema)).find((message) => message !== undefined);
  const info = detail(ErrorInfoSchema);
  const [exceeded] = detail(QuotaFailureSchema)?.violations ?? [];
  const violations = detail(BadRequestSchema)?.fieldViolations ?? [];
  return {
    code: status[error.code] ?? "",
    message: error.details,
    fields: violations.map(({ field, description }) => ({ field, description })),
    reason: info?.reason ?? "",
    metadata: info?.metadata ?? {},
    resource: detail(ResourceInfoSchema)?.resourceName ?? "",
    precondition: detail(PreconditionFailureSchema)?.violations[0]?.type ?? "",
    quota: exceeded === undefined ? null : { subject: exceeded.subject, description: exceeded.description },
    retries: detail(RetryInfoSchema) !== undefined,
    detailBytes: (bytes as Buffer | undefined)?.length ?? 0,
  };
}
