import fc from "fast-check";
import type { JsonObject } from "../../../../src/runtime/json.ts";

type Members = Record<string, fc.Arbitrary<unknown>>;

/** An object with some of these members. */
const some = (members: Members) => fc.record(members, { requiredKeys: [] });
const profile = some({ type: fc.constantFrom("RuntimeDefault", "Localhost", "Unconfined") });
const seLinux = some({ type: fc.constantFrom("", "container_t", "spc_t"), user: fc.constantFrom("", "u") });
const shared: Members = {
  runAsUser: fc.constantFrom(0, 1000),
  runAsNonRoot: fc.boolean(),
  seccompProfile: profile,
  appArmorProfile: profile,
  seLinuxOptions: seLinux,
  windowsOptions: some({ hostProcess: fc.boolean() }),
};
const capabilities = some({
  add: fc.array(fc.constantFrom("CHOWN", "IPC_LOCK", "NET_BIND_SERVICE", "SYS_ADMIN"), { maxLength: 2 }),
  drop: fc.array(fc.constantFrom("ALL", "NET_RAW"), { maxLength: 1 }),
});
const context = some({
  ...shared,
  capabilities,
  privileged: fc.boolean(),
  allowPrivilegeEscalation: fc.boolean(),
  procMount: fc.constantFrom("Default", "Unmasked"),
});
const handler = some({ httpGet: some({ host: fc.constantFrom("", "10.0.0.1"), port: fc.constant(80) }) });
const mount = fc.record({ name: fc.constantFrom("a", "b"), mountPath: fc.constant("/m"), readOnly: fc.boolean() });
const container = (name: string) =>
  some({
    securityContext: context,
    ports: fc.array(some({ hostPort: fc.constantFrom(0, 80) }), { maxLength: 1 }),
    livenessProbe: handler,
    lifecycle: some({ preStop: handler }),
    volumeMounts: fc.array(mount, { maxLength: 2 }),
  }).map((members) => ({ name, image: "i", ...members }));
const source = fc.oneof(
  fc.constantFrom("/dev/shm", "/dev//shm/x", "/etc", "relative", "/a/../b").map((path) => ({ hostPath: { path } })),
  fc.constantFrom("emptyDir", "nfs", "csi", "gitRepo", "secret").map((type) => ({ [type]: {} })),
);
const volume = fc.tuple(fc.constantFrom("a", "b"), source).map(([name, of]) => ({ name, ...of }));
const toleration = some({
  key: fc.constantFrom("", "gpu", "node-role.kubernetes.io/master"),
  operator: fc.constant("Exists"),
});

/** Templates that do, or do not, what each control judges. */
export const podTemplate: fc.Arbitrary<JsonObject> = fc
  .record({
    containers: fc.array(container("main"), { minLength: 1, maxLength: 1 }),
    initContainers: fc.array(container("init"), { maxLength: 1 }),
    rest: some({
      hostNetwork: fc.boolean(),
      hostPID: fc.boolean(),
      hostUsers: fc.boolean(),
      securityContext: some({
        ...shared,
        sysctls: fc.array(some({ name: fc.constantFrom("kernel.sem", "x") }), { maxLength: 1 }),
      }),
      volumes: fc.array(volume, { maxLength: 2 }),
      tolerations: fc.array(toleration, { maxLength: 1 }),
      priorityClassName: fc.constantFrom("", "high", "system-node-critical"),
      os: fc.constantFrom({ name: "linux" }, { name: "windows" }),
    }),
  })
  .map(({ rest, ...lists }) => ({ spec: { ...rest, ...lists } }) as JsonObject);
