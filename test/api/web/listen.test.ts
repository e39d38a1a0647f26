/** Where the API is served over HTTP, and what happens if its address cannot be had. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { checkAddresses } from "../../../src/api/server.ts";
import { consoleOf, consoleText } from "../../../src/compose/console.ts";
import { readConsole } from "../../../src/config/config-console.ts";
import { startFixture } from "../fixture.ts";
import { startWebFixture } from "./http.ts";
import { ANY_WEB } from "./listen.ts";

/** The command, what GANGWAY_CONSOLE_LISTEN says, and where it listens; `optional`: it starts also without. */
const places: readonly (readonly ["up" | "serve", string | undefined, string | null])[] = [
  ["up", undefined, "127.0.0.1:7480, optional"],
  ["up", "", "127.0.0.1:7480, optional"],
  ["up", "off", null],
  ["up", "127.0.0.1:9000", "127.0.0.1:9000"],
  ["serve", undefined, null],
  ["serve", "off", null],
  ["serve", "127.0.0.1:9000", "127.0.0.1:9000"],
];

suite("where it listens", () => {
  for (const [command, variable, expected] of places) {
    test(`gangway ${command} with ${variable === undefined ? "no variable" : `"${variable}"`}`, () => {
      const web = consoleOf(readConsole({ GANGWAY_CONSOLE_LISTEN: variable }), command);
      assert.equal(web && `${web.listen}${web.isOptional ? ", optional" : ""}`, expected);
    });
  }
});

/** Variables with a wrong part, and what the error names. */
const wrong: Readonly<Record<string, readonly [Readonly<Record<string, string>>, RegExp]>> = {
  "an address without a port": [{ GANGWAY_CONSOLE_LISTEN: "127.0.0.1" }, /GANGWAY_CONSOLE_LISTEN .*HOST:PORT/],
  "a URL in place of a host": [{ GANGWAY_CONSOLE_HOSTS: "a,https://b" }, /GANGWAY_CONSOLE_HOSTS has "https:\/\/b"/],
  "a name in place of a proxy": [{ GANGWAY_TRUSTED_PROXIES: "proxy" }, /GANGWAY_TRUSTED_PROXIES .*"proxy"/],
};

suite("refused", () => {
  for (const [name, [variables, message]] of Object.entries(wrong)) {
    test(name, () => assert.throws(() => readConsole(variables), message));
  }
});

test("names of browsers are read without their case", () => {
  const { hosts } = readConsole({ GANGWAY_CONSOLE_HOSTS: "Console.example.com, b:8443" });
  assert.deepEqual(hosts, ["console.example.com", "b:8443"]);
});

async function takenAddress(t: TestContext): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a default address that is taken leaves the API without HTTP, and the line about it says so", async (t) => {
  const listen = await takenAddress(t);
  const web = { ...ANY_WEB, listen, isOptional: true };
  await checkAddresses({ listen: "127.0.0.1:0", insecure: false, tls: null, authenticates: false, web });
  const { api } = await startFixture(t, {}, undefined, null, web);
  assert.equal(api.web.kind, "missing");
  assert.match(consoleText(api), /^ · no console: cannot listen on .* in use .*GANGWAY_CONSOLE_LISTEN$/);
});

test("an address that was asked for and is taken is an error, before anything is started and later", async (t) => {
  const listen = await takenAddress(t);
  const web = { ...ANY_WEB, listen };
  const exposure = { listen: "127.0.0.1:0", insecure: false, tls: null, authenticates: false };
  await assert.rejects(checkAddresses({ ...exposure, web }), /in use .*GANGWAY_CONSOLE_LISTEN/);
  await assert.rejects(startFixture(t, {}, undefined, null, web), /in use .*GANGWAY_CONSOLE_LISTEN/);
});

test("other machines get nothing in the clear, and nothing without credentials", async (t) => {
  const web = { ...ANY_WEB, listen: "0.0.0.0:0" };
  await assert.rejects(startFixture(t, {}, undefined, null, web), /will not listen on 0\.0\.0\.0:0: .*no encryption/);
  const exposure = { listen: "127.0.0.1:0", insecure: false, tls: null, authenticates: true };
  await assert.rejects(checkAddresses({ ...exposure, web }), /no encryption; set GANGWAY_TLS_CERT_FILE/);
  const encrypted = { ...exposure, tls: { clients: "none" as const }, authenticates: false };
  await assert.rejects(checkAddresses({ ...encrypted, web }), /no authentication/);
});

test("the line that says where it listens has the URL after the address of gRPC", async (t) => {
  const { api, url } = await startWebFixture(t);
  assert.equal(consoleText(api), ` · console ${url}`);
  assert.equal(consoleText(null), "");
});
