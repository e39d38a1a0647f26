/** Which host paths the pods of a namespace without settings may have, by whether `gangway up` knows its callers. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { PLAIN } from "../../src/cli/rpc/channel.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { NamespaceService } from "../../src/gen/gangway/v1/namespace_service_pb.ts";
import { addDatabase } from "../support/data-folder.ts";
import { signingKey, TestIssuer } from "../support/issuer.ts";
import { OWN_KINDS } from "../support/kinds.ts";

async function serve(t: TestContext, of: { readonly authenticates: boolean }) {
  const parts = new AsyncDisposableStack();
  t.after(() => parts.disposeAsync());
  const folder = mkdtempSync(join(tmpdir(), "gangway-policy-"));
  parts.defer(() => rmSync(folder, { recursive: true }));
  const file = (name: string, content: object) => {
    writeFileSync(join(folder, name), JSON.stringify(content));
    return join(folder, name);
  };
  const issuer = await TestIssuer.start(await signingKey("one", "ES256"));
  parts.defer(() => issuer.close());
  const issuers = [{ issuer: issuer.url, audiences: ["gangway"], subjectPrefix: "login:" }];
  const bindings = [{ name: "root", subject: "login:root", role: "admin" }];
  const config = readConfig(folder, {
    ...(of.authenticates ? { GANGWAY_AUTHENTICATION_FILE: file("authentication.yaml", { issuers }) } : {}),
    GANGWAY_ACCESS_FILE: file("access.yaml", { bindings }),
  });
  const data = join(folder, "data");
  addDatabase(data);
  const options = { exit: false, examples: false, listen: "127.0.0.1:0", insecure: false, data, simulate: false };
  const service = await startEmbedded(options, config, OWN_KINDS);
  parts.defer(service.close);
  const token = of.authenticates ? await issuer.sign({ sub: "root" }) : null;
  const security = token === null ? PLAIN : { ...PLAIN, token: async () => token };
  const client = connect(service.address, new AbortController().signal, security);
  parts.defer(client.close);
  return client;
}

const job = (namespace: string) => ({
  metadata: { namespace, name: "reads-the-node" },
  spec: {
    kind: "Job",
    replicaSpecs: {
      Worker: {
        replicas: 1,
        template: {
          spec: {
            containers: [{ name: "main", image: "busybox", volumeMounts: [{ name: "v", mountPath: "/host" }] }],
            volumes: [{ name: "v", hostPath: { path: "/" } }],
          },
        },
      },
    },
  },
});

test("without authentication, the root of the node is allowed with a warning", async (t) => {
  const client = await serve(t, { authenticates: false });
  const { warnings } = await client.call(JobService.method.createJob, { job: job("team"), validateOnly: true });
  assert.match(warnings.map(({ message }) => message).join(), /--allow host-path=\//);
});

test("with authentication, even an admin's job gets no path of the node, until an admin allows it", async (t) => {
  const client = await serve(t, { authenticates: true });
  await client.call(NamespaceService.method.createNamespace, { namespace: { name: "made" } });
  for (const namespace of ["default", "made"]) {
    const refused = client.call(JobService.method.createJob, { job: job(namespace), validateOnly: true });
    await assert.rejects(refused, /reads-the-node|hostPath/);
  }
  const podPolicy = { allow: ["host-path=/"] };
  await client.call(NamespaceService.method.updateNamespace, { namespace: { name: "made", podPolicy } });
  await client.call(JobService.method.createJob, { job: job("made"), validateOnly: true });
});
