/** The client in Python against real services: through lost connections, a restart, TLS and credentials. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import { cutLine } from "../support/cut-line.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { MainProcess } from "../support/main-process.ts";
import { freePort } from "../support/redis-server.ts";
import { PYTHON, runLive } from "./python.ts";

suite("the client in Python", { skip: PYTHON === null && "needs Python 3 with grpcio and PyYAML" }, () => {
  test("jobs, logs and tokens hold through lost connections and a restart", async (t) => {
    const data = newDataFolder("gangway-python-");
    const port = await freePort();
    const address = `127.0.0.1:${port}`;
    const start = async () => {
      const none = { DATABASE_URL: "", REDIS_URL: "" };
      const started = new MainProcess(["up", "--no-examples", "--listen", address, "--data", data], none);
      await started.printed("listening on");
      return started;
    };
    let service = await start();
    t.after(async () => {
      await service.end("SIGKILL");
      rmSync(data, { recursive: true, force: true });
    });
    const line = await cutLine({ host: "127.0.0.1", port });
    t.after(() => line.close());
    const environment = { GANGWAY_ADDRESS: address, GANGWAY_LINE: `127.0.0.1:${line.port}` };
    await runLive("live_service", environment, {
      cut: line.cut,
      mend: line.mend,
      kill: async () => void (await service.end("SIGKILL")),
      start: async () => {
        service = await start();
      },
    });
  });

  test("TLS, certificates and tokens", { skip: !hasOpenssl() && "needs openssl" }, async (t) => {
    const data = newDataFolder("gangway-python-");
    const certificates = new Certificates();
    const server = certificates.sign("server", "DNS:localhost");
    const me = certificates.sign("me", "DNS:me.test");
    const file = (name: string, text: string) => {
      writeFileSync(join(data, name), text);
      return join(data, name);
    };
    const variables = {
      GANGWAY_DATA: data,
      GANGWAY_TLS_CERT_FILE: server.certFile,
      GANGWAY_TLS_KEY_FILE: server.keyFile,
      GANGWAY_TLS_CLIENT_CA_FILE: certificates.caFile,
      GANGWAY_TLS_CLIENT: "optional",
      GANGWAY_ACCESS_FILE: file("access.yaml", 'bindings: [{name: me, subject: "dns:me.test", role: admin}]'),
      GANGWAY_AUTHENTICATION_FILE: file("authentication.yaml", "robots: true"),
    };
    const options = { exit: false, examples: false, listen: "127.0.0.1:0", data: null, insecure: false };
    const service = await startEmbedded({ ...options, simulate: false }, readConfig(data, variables), OWN_KINDS);
    t.after(async () => {
      await service.close();
      certificates.remove();
      rmSync(data, { recursive: true, force: true });
    });
    const port = /:(\d+)$/.exec(service.address)?.[1];
    assert.ok(port !== undefined);
    const { certFile: CERT, keyFile: KEY } = me;
    await runLive("live_access", { SERVICE: `localhost:${port}`, CA: certificates.caFile, CERT, KEY });
  });
});
