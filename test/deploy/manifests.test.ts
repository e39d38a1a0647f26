import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { get } from "node:http";
import { get as getTls } from "node:https";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { lacking } from "../../src/api/exposure.ts";
import { authenticates } from "../../src/compose/access.ts";
import { readConfig } from "../../src/config/config.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { parseListenAddress } from "../../src/runtime/listen-address.ts";
import { startHttp } from "../../src/telemetry/http.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import { type Doc, deploy, documents, envOf, filesOf, kustomization, manifests, workloads, yaml } from "./manifests.ts";

const gangway = fileURLToPath(new URL("../../bin/gangway", import.meta.url));
const serving = workloads().filter(({ kind }) => kind === "Deployment");

/** The API that each kind belongs to. */
const KINDS: Record<string, string> = {
  Namespace: "v1",
  ServiceAccount: "v1",
  Service: "v1",
  Deployment: "apps/v1",
  Job: "batch/v1",
  PodDisruptionBudget: "policy/v1",
  NetworkPolicy: "networking.k8s.io/v1",
  ClusterRole: "rbac.authorization.k8s.io/v1",
  ClusterRoleBinding: "rbac.authorization.k8s.io/v1",
};

function subset(part: Record<string, string>, whole: Record<string, string>): boolean {
  return Object.entries(part).every(([key, value]) => whole[key] === value);
}

/** What a process needs to hand its work over and close after its drain. */
const CLOSE_SECONDS = 10;

test("a pod is killed only after its process had time to drain and to close", () => {
  for (const { name, pod, container } of serving) {
    const set = envOf(container).get("GANGWAY_DRAIN_SECONDS")?.value;
    const { drainMs } = readConfig(".", set === undefined ? {} : { GANGWAY_DRAIN_SECONDS: set });
    assert.ok(pod.spec.terminationGracePeriodSeconds >= drainMs / 1000 + CLOSE_SECONDS, name);
  }
});

test("every manifest is of a kind and version that clusters have, and every file is applied", () => {
  for (const { file, doc } of manifests()) assert.equal(doc.apiVersion, KINDS[doc.kind], `${file}: ${doc.kind}`);
  const names = manifests().map(({ doc }) => `${doc.kind}/${doc.metadata.name}`);
  assert.equal(new Set(names).size, names.length);
  const applied = [
    ...kustomization().resources,
    "kustomization.yaml",
    "stores.env",
    "authentication.yaml",
    "access.yaml",
    // Applied by itself, because a cluster without the Prometheus operator does not know its kinds.
    "monitoring",
  ].sort();
  assert.deepEqual([...filesOf("kubernetes")].sort(), applied);
});

test("pod monitors scrape the metrics port of every process once, as it is served", () => {
  const { resources, namespace } = yaml("kubernetes/monitoring/kustomization.yaml");
  assert.deepEqual([...filesOf("kubernetes/monitoring")].sort(), ["kustomization.yaml", ...resources]);
  assert.equal(namespace, kustomization().namespace);
  const monitors = documents("kubernetes/monitoring/pod-monitor.yaml");
  const selects = ({ selector }: Doc, labels: Record<string, string>) =>
    subset(selector.matchLabels, labels) &&
    (selector.matchExpressions ?? []).every((one: Doc) => one.values.includes(labels[one.key]));
  for (const { name, kind, pod, container } of workloads()) {
    const own = monitors.filter(({ spec }) => selects(spec, pod.metadata.labels));
    assert.equal(own.length, kind === "Deployment" ? 1 : 0, name);
    for (const { apiVersion, spec } of own) {
      assert.equal(apiVersion, "monitoring.coreos.com/v1");
      const [endpoint] = spec.podMetricsEndpoints;
      assert.ok(container.ports.some((port: Doc) => port.name === endpoint.port));
      assert.equal(endpoint.scheme ?? "http", envOf(container).has("GANGWAY_TLS_CERT_FILE") ? "https" : "http", name);
    }
  }
});

test("each role runs with probes, a disruption budget and an account of its own", () => {
  assert.deepEqual(
    serving.map(({ name }) => name),
    ["gangway-api", "gangway-planner", "gangway-worker"],
  );
  const budgets = manifests().filter(({ doc }) => doc.kind === "PodDisruptionBudget");
  for (const { name, doc, pod, container } of serving) {
    assert.ok(doc.spec.replicas >= 2, name);
    assert.ok(container.livenessProbe && container.readinessProbe, name);
    assert.ok(
      budgets.some((one) => subset(one.doc.spec.selector.matchLabels, pod.metadata.labels)),
      name,
    );
    assert.equal(pod.spec.serviceAccountName, name);
  }
});

test("every name that a manifest refers to exists", () => {
  const docs = manifests().map(({ doc }) => doc);
  const accounts = docs.filter(({ kind }) => kind === "ServiceAccount").map(({ metadata }) => metadata.name);
  const [generated] = kustomization().secretGenerator;
  const keys: readonly string[] =
    readFileSync(`${deploy}kubernetes/${generated.envs[0]}`, "utf8").match(/^\w+(?==)/gm) ?? [];
  for (const { name, doc, pod, container } of workloads()) {
    assert.ok(accounts.includes(pod.spec.serviceAccountName), name);
    assert.ok(subset(doc.spec.selector?.matchLabels ?? {}, pod.metadata.labels), name);
    assert.ok(
      kustomization().images.some((image: Doc) => image.name === container.image),
      name,
    );
    for (const one of envOf(container).values()) {
      const reference = one.valueFrom?.secretKeyRef;
      if (reference === undefined) continue;
      assert.equal(reference.name, generated.name);
      assert.ok(keys.includes(reference.key), reference.key);
    }
  }
});

test("services, budgets and policies select existing pods and ports", () => {
  const pods = workloads().map(({ pod, container }) => ({
    labels: pod.metadata.labels,
    ports: (container.ports ?? []).map((port: Doc) => port.name),
  }));
  const selecting = manifests().flatMap(({ doc }) => {
    if (doc.kind === "Service")
      return [{ labels: doc.spec.selector, ports: doc.spec.ports.map((port: Doc) => port.targetPort) }];
    if (doc.kind === "PodDisruptionBudget") return [{ labels: doc.spec.selector.matchLabels, ports: [] }];
    if (doc.kind !== "NetworkPolicy") return [];
    const ports = (doc.spec.ingress ?? []).flatMap((rule: Doc) => rule.ports.map((port: Doc) => port.port));
    return [{ labels: doc.spec.podSelector.matchLabels ?? {}, ports }];
  });
  assert.ok(selecting.length >= 6);
  for (const { labels, ports } of selecting) {
    const selected = pods.filter((pod) => subset(labels, pod.labels));
    assert.ok(selected.length > 0, JSON.stringify(labels));
    for (const port of ports)
      assert.ok(
        selected.some((pod) => pod.ports.includes(port)),
        port,
      );
  }
});

test("no pod is root, can become root, writes its image, or carries a token for its own cluster", () => {
  for (const { name, pod, container } of workloads()) {
    assert.equal(pod.spec.automountServiceAccountToken, false, name);
    assert.equal(pod.spec.securityContext.runAsNonRoot, true, name);
    assert.ok(pod.spec.securityContext.runAsUser > 0, name);
    assert.equal(pod.spec.securityContext.seccompProfile.type, "RuntimeDefault", name);
    const { allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities } = container.securityContext;
    assert.deepEqual(
      [allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities.drop],
      [false, true, ["ALL"]],
      name,
    );
  }
});

test("the only right in the cluster is to review tokens, and only the api processes have it and a token for it", () => {
  const roles = manifests().filter(({ doc }) => /Role$/.test(doc.kind));
  const rules = [{ apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] }];
  assert.deepEqual(
    roles.map(({ doc }) => [doc.metadata.name, doc.rules]),
    [["gangway-token-review", rules]],
  );
  const bindings = manifests().filter(({ doc }) => /RoleBinding$/.test(doc.kind));
  const subjects = [{ kind: "ServiceAccount", name: "gangway-api", namespace: kustomization().namespace }];
  assert.deepEqual(
    bindings.map(({ doc }) => [doc.roleRef.name, doc.subjects]),
    [["gangway-token-review", subjects]],
  );
  for (const { name, pod } of workloads()) {
    const volumes: readonly Doc[] = pod.spec.volumes ?? [];
    const holds = volumes.some(({ projected }) => projected?.sources.some((one: Doc) => one.serviceAccountToken));
    assert.equal(holds, name === "gangway-api", name);
  }
});

test("no process serves insecurely, and a network policy admits only chosen callers as well", () => {
  const policies = manifests().filter(({ doc }) => doc.kind === "NetworkPolicy");
  const closed = policies.find(({ doc }) => Object.keys(doc.spec.podSelector).length === 0);
  assert.deepEqual([closed?.doc.spec.policyTypes, closed?.doc.spec.ingress], [["Ingress"], undefined]);
  for (const { doc } of policies.filter((one) => one !== closed)) {
    for (const rule of doc.spec.ingress) assert.ok(rule.from.length > 0 && rule.ports.length > 0, doc.metadata.name);
  }
  for (const { name, container } of serving) assert.ok(!container.args.includes("--insecure"), name);
});

/** The variables of a container, with the files of a folder in place of those that its volumes have. */
function settingsOf(container: Doc, certificates: Certificates): Readonly<Record<string, string>> {
  const { certFile, keyFile } = certificates.sign("gangway", "DNS:gangway.gangway.svc");
  const files: Readonly<Record<string, string>> = {
    "/etc/gangway/tls/tls.crt": certFile,
    "/etc/gangway/tls/tls.key": keyFile,
    "/etc/gangway/access/authentication.yaml": `${deploy}kubernetes/authentication.yaml`,
    "/etc/gangway/access/access.yaml": `${deploy}kubernetes/access.yaml`,
  };
  const paths = (container.volumeMounts ?? []).map((mount: Doc) => mount.mountPath);
  const entries = [...envOf(container)].map(([key, { value = "" }]) => {
    if (value.startsWith("/"))
      assert.ok(
        paths.some((path: string) => value.startsWith(`${path}/`)),
        `${key} is mounted`,
      );
    return [key, files[value] ?? value] as const;
  });
  return Object.fromEntries(entries);
}

test("each process starts with its environment, and probes use what it serves then", {
  skip: !hasOpenssl(),
}, async (t) => {
  const certificates = new Certificates();
  t.after(() => certificates.remove());
  for (const { name, container } of serving) {
    const config = readConfig("/", settingsOf(container, certificates));
    const { httpListen, metricsListen } = config;
    const ports = new Map<string, number>(container.ports.map((port: Doc) => [port.name, port.containerPort]));
    assert.equal(parseListenAddress(httpListen ?? "").port, ports.get("health"), name);
    assert.equal(parseListenAddress(metricsListen ?? "").port, ports.get("metrics"), name);
    const tls = config.tls && {
      clients: config.tls.clients,
      context: () => config.tls?.context ?? {},
      onChange: () => {},
    };
    const listen = { health: "127.0.0.1:0", metrics: null, tls };
    const http = await startHttp({ clock: systemClock(), checks: [], scrape: null }, listen);
    for (const { httpGet } of [container.livenessProbe, container.readinessProbe]) {
      assert.equal(httpGet.port, "health");
      const url = `${(httpGet.scheme ?? "HTTP").toLowerCase()}://${http.health}${httpGet.path}`;
      // As a kubelet, which does not verify certificates.
      const [response] = await once(
        url.startsWith("https") ? getTls(url, { rejectUnauthorized: false }) : get(url),
        "response",
      );
      assert.equal(response.statusCode, 200, `${name} ${httpGet.path}`);
      response.resume();
    }
    await http.close();
    const grpc = container.args[container.args.indexOf("--listen") + 1];
    if (name !== "gangway-api") continue;
    assert.equal(parseListenAddress(grpc).port, ports.get("grpc"));
    assert.deepEqual(lacking({ listen: grpc, tls: config.tls, authenticates: authenticates(config) }), []);
  }
});

const help = (...args: string[]) =>
  spawnSync(process.execPath, [gangway, ...args, "--help"], { encoding: "utf8" }).stdout;
const commands = help();
for (const { name, container } of workloads()) {
  const [command, ...args] = container.args as string[];
  const known = new RegExp(`^  ${command}\\b`, "m").test(commands);
  const skip = known ? false : `the command line has no command ${command}`;
  test(`${name} is started as the command line's help says`, { skip }, () => {
    const said = help(command ?? "");
    for (const flag of args.filter((arg) => arg.startsWith("--"))) assert.match(said, new RegExp(`${flag}\\b`), flag);
  });
}

test("the image runs Node 24 as a numeric user, without development packages", () => {
  const file = readFileSync(`${deploy}Dockerfile`, "utf8");
  const stages = file.split(/^FROM /m).slice(1);
  assert.deepEqual(
    stages.map((stage) => /^node:(\d+)/.exec(stage)?.[1]),
    ["24", "24"],
  );
  const [build = "", run = ""] = stages;
  assert.match(build, /npm pack /);
  assert.match(build, /npm ci --omit=dev /);
  assert.match(run, /^USER [1-9]\d*:[1-9]\d*$/m);
  const users = serving.map(
    ({ pod }) => `${pod.spec.securityContext.runAsUser}:${pod.spec.securityContext.runAsGroup}`,
  );
  assert.deepEqual(new Set(users), new Set([/^USER (\S+)$/m.exec(run)?.[1]]));
  const copied = [...run.matchAll(/^COPY (.*)$/gm)].map(([, what]) => what);
  assert.deepEqual(copied, ["--from=build /app /app"]);
  const exposed = /^EXPOSE (.*)$/m.exec(run)?.[1]?.split(" ").map(Number);
  const ports = new Set(serving.flatMap(({ container }) => container.ports.map((port: Doc) => port.containerPort)));
  assert.deepEqual(new Set(exposed), ports);
});
