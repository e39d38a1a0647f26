/** Commands of the pages that the test does not run as they stand, each with the reason. */

/** How a command is treated instead of being run and waited for. */
export type Treatment =
  /** The test leaves it out. */
  | { readonly kind: "notRun" }
  /** The test starts it beside the others, and goes on once its output has this text. */
  | { readonly kind: "background"; readonly until: string }
  /** The reader has stopped every process by now: the test ends what runs in the background, and then runs it. */
  | { readonly kind: "afterStop" }
  /** The test runs it where the control plane of the tests is built and kubectl is on the PATH. */
  | { readonly kind: "onControlPlane"; readonly until?: string };

export type Exception = Treatment & {
  readonly page: string;
  readonly command: string;
  readonly reason: string;
};

const serviceOfItsOwn = "the test starts the service of the page itself";
const needsControlPlane = "needs the control plane of the tests and kubectl";

const needsPerson = "needs a person with a browser, and an issuer";

export const EXCEPTIONS: readonly Exception[] = [
  ...[
    'bin/gangway login --issuer https://login.example.com --client-id gangway --scope "openid groups offline_access"',
    "bin/gangway login",
    "bin/gangway logout",
  ].map((command): Exception => ({ page: "docs/access.md", command, kind: "notRun", reason: needsPerson })),
  { page: "README.md", command: "npm ci", kind: "notRun", reason: "the test runs in a clone where it has run" },
  { page: "README.md", command: "npm start", kind: "notRun", reason: serviceOfItsOwn },
  {
    page: "README.md",
    command: "bin/gangway watch gpt-finetune",
    kind: "background",
    until: "gpt-finetune",
    reason: "runs until it is interrupted",
  },
  {
    page: "docs/clusters.md",
    command: "GANGWAY_CREDENTIALS_KEY=$(cat gangway.key) npm start -- --no-examples",
    kind: "notRun",
    reason: serviceOfItsOwn,
  },
  {
    page: "docs/clusters.md",
    command:
      "GANGWAY_CREDENTIALS_KEYS_FILE=keys.yaml GANGWAY_CREDENTIALS_KEY=$(cat gangway.key) npm start -- --no-examples",
    kind: "notRun",
    reason: serviceOfItsOwn,
  },
  {
    page: "docs/clusters.md",
    command: "npm run kube:build",
    kind: "notRun",
    reason: "takes some minutes; the test uses what it has built",
  },
  {
    page: "docs/clusters.md",
    command: "npm run kube:start -- admin.yaml",
    kind: "onControlPlane",
    until: "its kubeconfig is",
    reason: needsControlPlane,
  },
  ...[
    "kubectl --kubeconfig admin.yaml apply -f deploy/cluster-rbac.yaml",
    "cp admin.yaml east.yaml",
    "kubectl --kubeconfig east.yaml config set-credentials gangway --token " +
      '"$(kubectl --kubeconfig admin.yaml create token gangway -n gangway-system --duration 8760h)"',
    "kubectl --kubeconfig east.yaml config set-context --current --user gangway",
  ].map((command) => ({
    page: "docs/clusters.md",
    command,
    kind: "onControlPlane" as const,
    reason: needsControlPlane,
  })),
  {
    page: "docs/access.md",
    command: "bin/gangway up --no-examples --listen 0.0.0.0:7444 --data .gangway-tls",
    kind: "background",
    until: "listening",
    reason: "serves until it is interrupted",
  },
  {
    page: "docs/operating.md",
    command: "docker compose -f deploy/compose.yaml up -d postgres redis",
    kind: "notRun",
    reason: "the test has PostgreSQL and Redis of its own",
  },
  ...[
    "docker compose -f deploy/compose.yaml up -d --build",
    "docker compose -f deploy/compose.yaml exec -T api cat /setup/ca.crt > compose-ca.crt",
    "docker compose -f deploy/compose.yaml run --rm --entrypoint cat setup /setup/admin.password",
    "NODE_EXTRA_CA_CERTS=compose-ca.crt bin/gangway login --issuer https://localhost:5556 --client-id gangway " +
      '--scope "openid email offline_access"',
    "NODE_EXTRA_CA_CERTS=compose-ca.crt bin/gangway --ca-file compose-ca.crt whoami",
  ].map(
    (command): Exception => ({
      page: "docs/operating.md",
      command,
      kind: "notRun",
      reason: "needs Docker and a person with a browser; test/deploy/compose.test.ts checks the file",
    }),
  ),
  ...[
    "docker build -f deploy/Dockerfile -t registry.example.com/gangway:0.1.0 .",
    "docker push registry.example.com/gangway:0.1.0",
    "kubectl apply -f deploy/kubernetes/namespace.yaml",
    "kubectl create secret tls gangway-tls -n gangway --cert server.crt --key server.key",
    "kubectl apply -k deploy/kubernetes",
    "kubectl -n gangway rollout status deployment",
    "kubectl create namespace gangway-clients",
    "kubectl label namespace gangway-clients gangway.dev/client=allowed",
    "kubectl create serviceaccount admin -n gangway-clients",
    "(umask 077 && kubectl create token admin -n gangway-clients --audience gangway > admin.token)",
    "kubectl -n gangway port-forward deployment/gangway-api 7443:7443",
    "bin/gangway context set k8s --address 127.0.0.1:7443 --ca-file ca.crt --tls-server-name gangway.gangway.svc " +
      "--token-file admin.token",
    "bin/gangway whoami",
    "bin/gangway cluster list",
  ].map(
    (command): Exception => ({
      page: "docs/operating.md",
      command,
      kind: "notRun",
      reason: "needs a registry, Docker, and a cluster with kubelets; test/deploy checks the manifests",
    }),
  ),
  ...[
    "GANGWAY_HTTP_LISTEN=127.0.0.1:8081 GANGWAY_METRICS_LISTEN=127.0.0.1:9464 " +
      "bin/gangway serve --roles api,planner,worker",
    "bin/gangway serve --roles planner,worker",
    "bin/gangway serve --roles api,planner,worker --listen 127.0.0.1:0",
  ].map((command) => ({
    page: "docs/operating.md",
    command,
    kind: "background" as const,
    until: "serving",
    reason: "serves until it is interrupted",
  })),
  {
    page: "docs/operating.md",
    command: 'psql "$DATABASE_URL" -c "create database gangway_restored"',
    kind: "afterStop",
    reason: "the page says to stop every process before",
  },
  ...["bin/gangway cluster adopt east --dry-run", "bin/gangway cluster adopt east"].map((command) => ({
    page: "docs/operating.md",
    command,
    kind: "notRun" as const,
    reason: "the restored service listens on any port; test/cli/adopt-cluster.test.ts restores and adopts",
  })),
  ...[
    "cp -a .gangway gangway-backup",
    "rm -r .gangway && cp -a gangway-backup .gangway",
    "bin/gangway migrate --restored --data .gangway",
  ].map((command) => ({
    page: "docs/operating.md",
    command,
    kind: "notRun" as const,
    reason:
      "uses the data of a service that has stopped, and the test has none; test/store/db/restored.test.ts does it",
  })),
  ...[
    "kubectl label namespace monitoring gangway.dev/metrics=allowed",
    "kubectl apply -k deploy/kubernetes/monitoring",
  ].map((command) => ({
    page: "deploy/METRICS.md",
    command,
    kind: "notRun" as const,
    reason: "needs the Prometheus operator; test/deploy/monitoring.test.ts and manifests.test.ts check the files",
  })),
  { page: "CONTRIBUTING.md", command: "npm ci", kind: "notRun", reason: "the test runs in a clone where it has run" },
  { page: "CONTRIBUTING.md", command: "npm run check", kind: "notRun", reason: "runs beside the tests, in .ci" },
  { page: "CONTRIBUTING.md", command: "npm run lint", kind: "notRun", reason: "runs beside the tests, in .ci" },
  { page: "CONTRIBUTING.md", command: "npm test", kind: "notRun", reason: "runs this test" },
  { page: "test/README.md", command: "npm test", kind: "notRun", reason: "runs this test" },
  ...[
    "npm test -- test/core/reconcile/reconcile.test.ts",
    'npm test -- --test-name-pattern "a gang" test/core/plan/cases.test.ts',
  ].map((command) => ({
    page: "test/README.md",
    command,
    kind: "notRun" as const,
    reason: "a run of tests cannot begin another one",
  })),
];
