import assert from "node:assert/strict";
import { test } from "node:test";
import {
  checkedClusterSpec,
  checkedErrors,
  checkedObjects,
  checkedService,
  checkedVerdict,
} from "../../../src/core/kinds/check-answer.ts";

const EMPTY = { env: {}, initContainers: [] };

const specs: Record<string, { readonly answer: unknown; readonly names?: string }> = {
  "nothing beyond the required members": { answer: EMPTY },
  "every member that there is": {
    answer: {
      env: {
        main: [
          { name: "A", value: "b" },
          { name: "C", valueFrom: { fieldRef: {} } },
        ],
      },
      initContainers: [{ name: "init" }],
      volumes: [{ name: "v" }],
      volumeMounts: { main: [{ name: "v", mountPath: "/v" }] },
      command: { main: { command: ["run"], args: [] } },
      serviceAccount: "launcher",
      placing: { nodeSelector: { pool: "a" }, tolerations: [{}], podAffinity: [{}], podAntiAffinity: [{}] },
    },
  },
  "an unknown member": { answer: { ...EMPTY, volume: [] }, names: "volume;" },
  "a list": { answer: [], names: "clusterSpec must return an object" },
  "a variable without a name": { answer: { ...EMPTY, env: { main: [{ value: "b" }] } }, names: "env.main" },
  "a variable with an empty name": { answer: { ...EMPTY, env: { main: [{ name: "" }] } }, names: "env.main" },
  "a variable's source that is text": {
    answer: { ...EMPTY, env: { main: [{ name: "A", valueFrom: "b" }] } },
    names: "A, whose valueFrom",
  },
  "variables that are no list": { answer: { ...EMPTY, env: { main: { A: "b" } } }, names: "env.main" },
  "init containers that are texts": { answer: { ...EMPTY, initContainers: ["init"] }, names: "initContainers" },
  "volumes that are an object": { answer: { ...EMPTY, volumes: {} }, names: "volumes" },
  "mounts that are a list": { answer: { ...EMPTY, volumeMounts: [] }, names: "volumeMounts" },
  "mounts of a container that are no list": {
    answer: { ...EMPTY, volumeMounts: { main: {} } },
    names: "volumeMounts.main",
  },
  "commands that are a list": { answer: { ...EMPTY, command: [] }, names: "command" },
  "a command of text": { answer: { ...EMPTY, command: { main: { command: "run", args: [] } } }, names: "command.main" },
  "a command without arguments": { answer: { ...EMPTY, command: { main: { command: ["a"] } } }, names: "command.main" },
  "an argument that is a number": {
    answer: { ...EMPTY, command: { main: { command: ["a"], args: ["b", 1] } } },
    names: "command.main",
  },
  "a service account that is no text": { answer: { ...EMPTY, serviceAccount: {} }, names: "serviceAccount" },
  "placing that is a list": { answer: { ...EMPTY, placing: [] }, names: "placing must be an object" },
  "placing with an unknown member": { answer: { ...EMPTY, placing: { nodeName: "n" } }, names: "placing nodeName" },
  "a node selector with a number": { answer: { ...EMPTY, placing: { nodeSelector: { a: 1 } } }, names: "nodeSelector" },
  "tolerations that are texts": { answer: { ...EMPTY, placing: { tolerations: ["a"] } }, names: "placing.tolerations" },
};
for (const [name, { answer, names }] of Object.entries(specs)) {
  test(`a cluster spec with ${name} is ${names === undefined ? "taken as it is" : "refused"}`, () => {
    if (names === undefined) assert.equal(checkedClusterSpec(answer), answer);
    else
      assert.throws(
        () => checkedClusterSpec(answer),
        (error: Error) => error.message.includes(names),
      );
  });
}

const SERVICE = { name: "set", selector: { app: "a" }, publishNotReadyAddresses: true };
const services: Record<string, { readonly answer: unknown; readonly names?: string }> = {
  "every member": { answer: SERVICE },
  "no labels of its own": { answer: { ...SERVICE, selector: {} } },
  "a promise": { answer: Promise.resolve(SERVICE), names: "not a promise" },
  "ports, which it cannot have": { answer: { ...SERVICE, ports: [] }, names: "service returned ports" },
  "a name that begins with a digit": { answer: { ...SERVICE, name: "1st" }, names: "service's name" },
  "a name that is too long": { answer: { ...SERVICE, name: "s".repeat(64) }, names: "service's name" },
  "a label that is a number": { answer: { ...SERVICE, selector: { app: 1 } }, names: "service's selector" },
  "no word on pods that are not ready": {
    answer: { ...SERVICE, publishNotReadyAddresses: undefined },
    names: "publishNotReadyAddresses",
  },
};
for (const [name, { answer, names }] of Object.entries(services)) {
  test(`a service with ${name} is ${names === undefined ? "taken as it is" : "refused"}`, () => {
    if (names === undefined) assert.equal(checkedService(answer), answer);
    else
      assert.throws(
        () => checkedService(answer),
        (error: Error) => error.message.includes(names),
      );
  });
}

test("null and undefined say that there is no service of the whole gang", () => {
  assert.deepEqual([null, undefined].map(checkedService), [null, null]);
});

const object = (more: object): object => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" }, ...more });
const objects: Record<string, { readonly answer: unknown; readonly names?: string }> = {
  "no object": { answer: [] },
  "objects of each kind": {
    answer: ["ConfigMap", "ServiceAccount", "Role", "RoleBinding"].map((kind) => object({ kind })),
  },
  "an object in place of a list": { answer: object({}), names: "list" },
  "an object of another kind": { answer: [object({}), object({ kind: "Secret" })], names: "a Secret at 1" },
  "an object without an API version": { answer: [object({ apiVersion: undefined })], names: "apiVersion at 0" },
  "an object without metadata": { answer: [object({ metadata: undefined })], names: "metadata.name at 0" },
  "an object whose name is a number": { answer: [object({ metadata: { name: 1 } })], names: "metadata.name at 0" },
};
for (const [name, { answer, names }] of Object.entries(objects)) {
  test(`objects with ${name} are ${names === undefined ? "taken as they are" : "refused"}`, () => {
    if (names === undefined) assert.equal(checkedObjects(answer), answer);
    else
      assert.throws(
        () => checkedObjects(answer),
        (error: Error) => error.message.includes(names),
      );
  });
}

test("a verdict is one of the known ones, and none means that the gang goes on", () => {
  const verdicts = ["running", "succeeded", "failed", null, undefined].map(checkedVerdict);
  assert.deepEqual(verdicts, ["running", "succeeded", "failed", null, null]);
  for (const [answer, names] of [
    ["Running", "returned Running"],
    [true, "boolean"],
    [{}, "object"],
  ] as const) {
    assert.throws(
      () => checkedVerdict(answer),
      (error: Error) => error.message.includes(names),
    );
  }
});

test("a check's errors are a list of paths and messages", () => {
  const good = [{ path: "spec.kindSpec.size", message: "is too large" }];
  assert.deepEqual(checkedErrors(good), good);
  const many = Array.from({ length: 300_000 }, () => ({ ...good[0], more: 7 }));
  assert.deepEqual(checkedErrors(many).at(-1), { path: "spec", message: "and 299,900 more", more: 299_900 });
  assert.deepEqual(checkedErrors([]), []);
  for (const wrong of [[{ path: "a" }], [{ message: "b" }], [...good, { path: 1, message: "b" }], good[0], ["a"]]) {
    assert.throws(() => checkedErrors(wrong), /validate/);
  }
});
