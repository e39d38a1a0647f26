import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { accessCopy } from "../../../src/core/access/decide.ts";
import { judge, type RequestMessage } from "../../../src/core/access/judge.ts";
import { BUILT_IN_ROLES } from "../../../src/core/access/roles.ts";
import { type BoundScope, EMPTY_DIRECTORY, INSTALLATION, placeText } from "../../../src/core/access/scope.ts";
import {
  RegisterClusterRequestSchema,
  UpdateClusterRequestSchema,
} from "../../../src/gen/gangway/v1/cluster_service_pb.ts";

const identity = { subject: "login:ann", groups: [], method: "oidc", issuer: "login", expiresAtMs: null } as const;
const inEast = { kind: "cluster", name: "east" } as const;
const inHub = { kind: "cluster", name: "hub" } as const;
type Given = readonly (readonly [role: string, scope: BoundScope])[];

/** `Allowed`, the scope that is lacked, or the thing that does not exist for the caller. */
function verdict(given: Given, { verb, source }: { verb: "Register" | "Update"; source: string | null }): string {
  const to = { kind: "subject", name: identity.subject } as const;
  const recorded = { source: "store", version: 1, createTimeMs: 0, createdBy: "" } as const;
  const roles = BUILT_IN_ROLES.map((role) => ({ ...role, ...recorded }));
  const bindings = given.map(([role, scope], at) => ({ name: `b${at}`, to, role, scope, ...recorded }));
  const copy = accessCopy(roles, bindings, EMPTY_DIRECTORY);
  const of = { cluster: { name: "east" }, credentials: { kubeconfig: kubeconfigOf(source) } };
  const request = create(verb === "Register" ? RegisterClusterRequestSchema : UpdateClusterRequestSchema, of);
  const rpc = `gangway.v1.ClusterService/${verb}Cluster`;
  const judged = judge({ rpc, identity, request: request as unknown as RequestMessage }, copy);
  if (judged.kind === "denied") return `${judged.permission} for ${judged.at === null ? "any" : placeText(judged.at)}`;
  return judged.kind === "unseen" ? `${judged.name} does not exist` : judged.kind;
}

function kubeconfigOf(source: string | null) {
  if (source === null) return { case: "text", value: "kind: Config" } as const;
  return { case: "secret", value: { cluster: source, namespace: "fleet", name: "east" } } as const;
}

const cases: Record<string, { given: Given; verb: "Register" | "Update"; source: string | null; is: string }> = {
  "who may update both clusters refers from one to the other": {
    given: [
      ["cluster-admin", inEast],
      ["cluster-admin", inHub],
    ],
    verb: "Update",
    source: "hub",
    is: "allowed",
  },
  "who may not see the cluster of the Secret does not learn that it exists": {
    given: [["cluster-admin", inEast]],
    verb: "Update",
    source: "hub",
    is: "hub does not exist",
  },
  "who may only see the cluster of the Secret is told what it lacks": {
    given: [
      ["cluster-admin", inEast],
      ["viewer", inHub],
    ],
    verb: "Update",
    source: "hub",
    is: "clusters.update for cluster hub",
  },
  "a Secret of the service's own cluster needs the installation": {
    given: [["cluster-admin", inEast]],
    verb: "Update",
    source: "",
    is: "clusters.update for the installation",
  },
  "a kubeconfig that is sent needs nothing more": {
    given: [["cluster-admin", inEast]],
    verb: "Update",
    source: null,
    is: "allowed",
  },
  "an administrator of all clusters registers one by a Secret of another": {
    given: [["cluster-admin", INSTALLATION]],
    verb: "Register",
    source: "hub",
    is: "allowed",
  },
  "an administrator of all clusters registers one by a Secret of the service's own": {
    given: [["cluster-admin", INSTALLATION]],
    verb: "Register",
    source: "",
    is: "allowed",
  },
};
for (const [name, { given, is, ...call }] of Object.entries(cases)) {
  test(name, () => assert.equal(verdict(given, call), is));
}
