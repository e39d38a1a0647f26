/** The laws of authorization: denied by default, wider scopes contain narrower ones, and nothing else matters. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { BindingRecord, RoleRecord } from "../../../src/core/access/binding.ts";
import { accessCopy, beyond, mayCall, namespacesWith, namesWith, scopesWith } from "../../../src/core/access/decide.ts";
import {
  ALL_PERMISSIONS,
  type CallPermission,
  PERMISSIONS as PLACES_OF,
} from "../../../src/core/access/permissions.ts";
import { BUILT_IN_ROLES } from "../../../src/core/access/roles.ts";
import { type BoundScope, covers, type Directory, INSTALLATION, type Place } from "../../../src/core/access/scope.ts";

/** Projects p and q with namespaces, and a tree of queues: a above b above c, and d. */
const directory: Directory = {
  namespaces: new Map([
    ["p1", { project: "p", defaultQueue: "b" }],
    ["p2", { project: "p", defaultQueue: "d" }],
    ["q1", { project: "q", defaultQueue: "d" }],
  ]),
  parents: new Map([
    ["a", null],
    ["b", "a"],
    ["c", "b"],
    ["d", null],
  ]),
};

const of = (kind: BoundScope["kind"], names: readonly string[]) =>
  fc.constantFrom(...names).map((name): BoundScope => ({ kind, name }));
const scopes = fc.oneof(
  fc.constant(INSTALLATION),
  of("project", ["p", "q", "none"]),
  of("namespace", ["p1", "p2", "q1", "none"]),
  of("queue", ["a", "b", "c", "d", "none"]),
  of("pool", ["x", "x:y", "x:y/z", "xy", "w"]),
  of("cluster", ["east", "west"]),
);
const places: fc.Arbitrary<Place> = fc.oneof(
  scopes,
  fc.record({
    kind: fc.constant("share" as const),
    project: fc.constantFrom("p", "q"),
    name: fc.constantFrom("p1", "q1", "free"),
  }),
);
const permissions = fc.constantFrom(...ALL_PERMISSIONS);
const subjects = fc.constantFrom("ann", "bob");
const groups = fc.subarray(["ml", "ops", "ann"]);
const callers = fc.record({ subject: subjects, groups });
const recorded = { source: "store", version: 1, createTimeMs: 0, createdBy: "" } as const;
const roles: readonly RoleRecord[] = [
  ...BUILT_IN_ROLES.map((role) => ({ ...role, ...recorded })),
  { name: "own", permissions: ["jobs.get", "queues.use", "of a later version"], ...recorded },
];
const bindingLists: fc.Arbitrary<readonly BindingRecord[]> = fc
  .array(
    fc.record({
      to: fc.oneof(
        subjects.map((name) => ({ kind: "subject" as const, name })),
        fc.constantFrom("ml", "ops", "ann").map((name) => ({ kind: "group" as const, name })),
      ),
      role: fc.constantFrom(...roles.map(({ name }) => name), "unknown"),
      scope: scopes,
    }),
    { maxLength: 6 },
  )
  .map((list) => list.map((one, at) => ({ ...one, name: `b${at}`, ...recorded })));
const copyOf = (bindings: readonly BindingRecord[]) => accessCopy(roles, bindings, directory);

test("denied is what no binding allows: some binding has the permission, and contains the place", () => {
  fc.assert(
    fc.property(bindingLists, callers, permissions, places, (bindings, caller, permission, place) => {
      const reason = bindings.some(
        ({ to, role, scope }) =>
          (to.kind === "subject" ? to.name === caller.subject : caller.groups.includes(to.name)) &&
          roles.some((one) => one.name === role && one.permissions.includes(permission)) &&
          covers(scope, place, directory),
      );
      assert.equal(mayCall(caller, permission, place, copyOf(bindings)), reason);
    }),
  );
  assert.equal(mayCall({ subject: "ann", groups: [] }, "jobs.get", INSTALLATION, copyOf([])), false);
});

test("a wider scope implies every narrower one, and containing is transitive", () => {
  fc.assert(
    fc.property(scopes, scopes, places, (wide, narrow, place) => {
      assert.ok(covers(INSTALLATION, place, directory));
      if (covers(wide, narrow, directory) && covers(narrow, place, directory)) {
        assert.ok(covers(wide, place, directory));
      }
      assert.ok(covers(narrow, narrow, directory));
    }),
    { numRuns: 1_000 },
  );
});

test("removing a binding never allows more, adding one never less, and their order does not matter", () => {
  fc.assert(
    fc.property(bindingLists, fc.nat(), callers, permissions, places, (bindings, at, caller, permission, place) => {
      const all = mayCall(caller, permission, place, copyOf(bindings));
      const without = bindings.filter((_, index) => index !== at % Math.max(1, bindings.length));
      if (mayCall(caller, permission, place, copyOf(without))) assert.ok(all);
      assert.equal(mayCall(caller, permission, place, copyOf([...bindings].reverse())), all);
    }),
  );
});

test("the namespaces, projects and pools of a list are exactly those that a call may name", () => {
  fc.assert(
    fc.property(bindingLists, callers, permissions, (bindings, caller, permission) => {
      const copy = copyOf(bindings);
      const namespaces = namespacesWith(caller, permission, copy);
      for (const name of ["p1", "p2", "q1", "none", "other"]) {
        const may = mayCall(caller, permission, { kind: "namespace", name }, copy);
        assert.equal(namespaces === null || namespaces.includes(name), may, name);
      }
      const projects = namesWith(caller, { permission, kind: "project" }, copy);
      for (const name of ["p", "q", "other"]) {
        const may = mayCall(caller, permission, { kind: "project", name }, copy);
        assert.equal(projects === null || projects.includes(name), may, name);
      }
      const pools = namesWith(caller, { permission, kind: "pool" }, copy);
      for (const name of ["x", "x:y", "x:yy", "x:y/z", "xy", "w/v", "v"]) {
        const listed =
          pools === null ||
          pools.some((prefix) => covers({ kind: "pool", name: prefix }, { kind: "pool", name }, directory));
        assert.equal(listed, mayCall(caller, permission, { kind: "pool", name }, copy), name);
      }
    }),
  );
});

test("whoever gives only what it has gives nobody more than it has itself", () => {
  fc.assert(
    fc.property(
      bindingLists,
      callers,
      scopes,
      fc.constantFrom(...roles),
      places,
      (bindings, giver, scope, role, place) => {
        const known = role.permissions.filter((one): one is CallPermission =>
          ALL_PERMISSIONS.includes(one as CallPermission),
        );
        const copy = copyOf(bindings);
        if (beyond(giver, { permissions: known, scope }, copy).length > 0) return;
        const given = {
          name: "new",
          to: { kind: "subject", name: "new" } as const,
          role: role.name,
          scope,
          ...recorded,
        };
        const after = copyOf([...bindings, given]);
        for (const permission of known) {
          const asked: readonly string[] = PLACES_OF[permission];
          if (asked.length === 0) assert.ok(scopesWith(giver, permission, copy).length > 0);
          else if (asked.includes(place.kind) && mayCall({ subject: "new", groups: [] }, permission, place, after)) {
            assert.ok(mayCall(giver, permission, place, copy), `${permission} at ${JSON.stringify(place)}`);
          }
        }
      },
    ),
    { numRuns: 2_000 },
  );
});
