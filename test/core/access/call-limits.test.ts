/** Which limits a caller has, and which calls count. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CALL_LIMIT_DEFAULTS,
  CALL_LIMIT_SETTINGS,
  type CallLimitSettings,
  costOfBytes,
  limitsOf,
  placeOf,
} from "../../../src/core/access/call-limits.ts";
import { ANONYMOUS, type Identity } from "../../../src/core/access/identity.ts";
import { RPC_TABLE } from "../../../src/core/access/rpc-table.ts";

const ann: Identity = { ...ANONYMOUS, subject: "login:ann", groups: ["login:ml", "login:all"], method: "oidc" };
const subject = (name: string) => ({ kind: "subject", name }) as const;
const group = (name: string) => ({ kind: "group", name }) as const;
const settings: CallLimitSettings = {
  defaults: CALL_LIMIT_DEFAULTS,
  callers: [
    { by: subject("login:bob"), limits: { watches: 1 } },
    { by: group("login:ml"), limits: { watches: 2 } },
    { by: subject("login:ann"), limits: { watches: 3 } },
    { by: group("login:all"), limits: { watches: null } },
    { by: subject("anonymous"), limits: { watches: 4 } },
  ],
};

const watches = {
  "the first entry that names a caller counts": [ann, 2],
  "an entry may take a limit away": [{ ...ann, subject: "login:eve", groups: ["login:all"] }, null],
  "others have the defaults": [{ ...ann, subject: "login:eve", groups: [] }, CALL_LIMIT_DEFAULTS.watches],
  "a service without authentication limits its callers only if the file names them": [ANONYMOUS, 4],
} as const;
for (const [name, [caller, max]] of Object.entries(watches)) {
  test(name, () => assert.equal(limitsOf(caller, settings).watches, max));
}

test("an entry leaves the other limits as they are", () => {
  assert.deepEqual(limitsOf(ann, settings), { ...CALL_LIMIT_DEFAULTS, watches: 2 });
});

test("without a file, callers of a service without authentication have no limit", () => {
  assert.deepEqual(new Set(Object.values(limitsOf(ANONYMOUS, CALL_LIMIT_SETTINGS))), new Set([null]));
});

test("every RPC counts, but for probes, renewals and releases", () => {
  const exempt = Object.keys(RPC_TABLE).filter((rpc) => placeOf(rpc) === null);
  assert.deepEqual(exempt.sort(), [
    "gangway.v1.ResourceManager/BatchReleaseResources",
    "gangway.v1.ResourceManager/ReleaseResource",
    "gangway.v1.ResourceManager/RenewAllocations",
    "grpc.health.v1.Health/Check",
    "grpc.health.v1.Health/List",
    "grpc.health.v1.Health/Watch",
  ]);
});

test("streams that stay open have limits of their own", () => {
  const others = Object.keys(RPC_TABLE).flatMap((rpc) => {
    const place = placeOf(rpc);
    return place === null || place === "callsInFlight" ? [] : [[rpc.split("/")[1], place]];
  });
  assert.deepEqual(Object.fromEntries(others), {
    WatchJobs: "watches",
    StreamJobLogs: "logStreams",
    WaitForResource: "waitingRequests",
  });
});

test("64 KiB count as one call more", () => {
  assert.deepEqual([0, 65_535, 65_536, 16 * 1024 * 1024].map(costOfBytes), [0, 0, 1, 256]);
});
