/** The client in Python against real services: through lost connections, a restart, TLS and credentials. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { hasMypy } from "../docs/needs.ts";
import { blocksOf, page } from "../docs/pages.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import { cutLine } from "../support/cut-line.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { MainProcess } from "../support/main-process.ts";
import { freePort } from "../support/redis-server.ts";
import { CLIENT_FOLDER, PYTHON, pythonEnvironment, runLive, runPython } from "./python.ts";

const execFilePromise = promisify(execFile);

/** Programs that readers copy: those of the pages that use the package, and the examples. */
type Program = { readonly name: string; readonly text: string };

function programs(): readonly Program[] {
  const pages = ["docs/api.md", "clients/python/README.md"].flatMap((path) =>
    blocksOf(page(path))
      .filter(({ language, text }) => language === "python" && text.startsWith("from gangway import"))
      .map(({ text, line }) => ({ name: `${path}:${line}`, text })),
  );
  const examples = readdirSync(join(CLIENT_FOLDER, "examples"))
    .filter((name) => name.endsWith(".py"))
    .map((name) => ({ name, text: readFileSync(join(CLIENT_FOLDER, "examples", name), "utf8") }));
  return [...pages, ...examples];
}

/** This program needs a service that asks for credentials. */
function isOfUnknownCaller({ text }: Program): boolean {
  return text.includes("except Unauthenticated");
}

/** Runs a program, and compares what it prints with its comments `# prints: …`, if it has any. */
async function runProgram({ name, text }: Program, environment: Readonly<Record<string, string>>): Promise<void> {
  const { stdout } = await execFilePromise(PYTHON ?? "", ["-c", text], { env: pythonEnvironment(environment) }).catch(
    (error: Error) => Promise.reject(new Error(`${name}: ${error.message}`)),
  );
  const prints = [...text.matchAll(/# prints: (.*)$/gm)].map(([, line]) => `${line}\n`).join("");
  if (prints !== "") assert.equal(stdout, prints, name);
}

suite("the client in Python", { skip: PYTHON === null && "needs Python 3 with grpcio and PyYAML" }, () => {
  let data: string;
  let port: number;
  let service: MainProcess;
  let environment: Readonly<Record<string, string>>;

  const start = async () => {
    const none = { DATABASE_URL: "", REDIS_URL: "" };
    const args = ["up", "--no-examples", "--listen", `127.0.0.1:${port}`, "--data", data];
    service = new MainProcess(args, none);
    await service.printed("listening on");
  };

  before(async () => {
    data = newDataFolder("gangway-python-");
    port = await freePort();
    environment = { GANGWAY_ADDRESS: `127.0.0.1:${port}` };
    await start();
  });

  after(async () => {
    await service.end("SIGKILL");
    rmSync(data, { recursive: true, force: true });
  });

  test("programs of the pages and the examples run and print what they say", async () => {
    const open = programs().filter((program) => !isOfUnknownCaller(program));
    assert.ok(open.length >= 9, "programs were found");
    const outcomes = await Promise.allSettled(open.map((program) => runProgram(program, environment)));
    const failed = outcomes.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
    assert.deepEqual(failed, []);
  });

  test("programs of the pages have strict types", { skip: !hasMypy() && "needs mypy (python3-mypy)" }, (t) => {
    const folder = mkdtempSync(join(tmpdir(), "gangway-python-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const files = programs().map(({ text }, at) => {
      const file = join(folder, `program_${at}.py`);
      writeFileSync(file, text);
      return file;
    });
    // mypy takes the types of the package from where it is, as those of an installed one.
    const mypy = ["-m", "mypy", "--no-incremental", "--cache-dir=/dev/null", "--strict"];
    runPython([...mypy, "--config-file=clients/python/pyproject.toml", ...files], {
      environment: { MYPYPATH: CLIENT_FOLDER },
    });
  });

  test("jobs, logs and tokens hold through lost connections and a restart", async (t) => {
    const line = await cutLine({ host: "127.0.0.1", port });
    t.after(() => line.close());
    const withLine = { ...environment, GANGWAY_LINE: `127.0.0.1:${line.port}` };
    await runLive("live_service", withLine, {
      cut: line.cut,
      mend: line.mend,
      kill: async () => void (await service.end("SIGKILL")),
      start,
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
    const unknown = programs().filter(isOfUnknownCaller);
    assert.equal(unknown.length, 1);
    const shown = { GANGWAY_ADDRESS: `localhost:${port}`, GANGWAY_CA_FILE: certificates.caFile };
    for (const program of unknown) await runProgram(program, shown);
    await runLive("live_access", { SERVICE: `localhost:${port}`, CA: certificates.caFile, CERT, KEY });
  });
});
