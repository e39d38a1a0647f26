/** Which requests of browsers are turned away, and whose address the audit log gets. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { clientAddress, parseTrustedProxies } from "../../../src/api/web/client-address.ts";
import { type GuardedRequest, parseHost, turnedAway } from "../../../src/api/web/guards.ts";

const NAMES = { listenHost: "127.0.0.1", hosts: ["console.example.com", "other.example.com:8443"] };
const POST: GuardedRequest = {
  method: "POST",
  host: "127.0.0.1:7480",
  localAddress: "127.0.0.1",
  origin: undefined,
  fetchSite: undefined,
};

/** A request, and why it is turned away; null: it is not. */
const cases: Readonly<Record<string, readonly [Partial<GuardedRequest>, "host" | "origin" | null]>> = {
  "a program that calls the address": [{}, null],
  "localhost on a loopback connection": [{ host: "localhost:7480" }, null],
  "IPv6 on a loopback connection": [{ host: "[::1]:7480", localAddress: "::1" }, null],
  "upper case": [{ host: "LOCALHOST:7480" }, null],
  "another port, as by a port that is forwarded": [{ host: "localhost:8080" }, null],
  "the address of the connection": [{ host: "10.0.0.5:7480", localAddress: "10.0.0.5" }, null],
  "the address of a connection over IPv4 to a socket of IPv6": [
    { host: "10.0.0.5:7480", localAddress: "::ffff:10.0.0.5" },
    null,
  ],
  "a name that is listed, with any port": [{ host: "console.example.com:444", localAddress: "10.0.0.5" }, null],
  "a name that is listed with its port": [{ host: "other.example.com:8443", localAddress: "10.0.0.5" }, null],
  "a name that is listed, with another port": [{ host: "other.example.com", localAddress: "10.0.0.5" }, "host"],
  "a name that leads here, as DNS rebinding makes one": [{ host: "evil.example:7480" }, "host"],
  "a name that begins like an own one": [{ host: "localhost.evil.example:7480" }, "host"],
  "a name that begins like an address": [{ host: "127.0.0.1.evil.example:7480" }, "host"],
  "a name that ends like an own one": [{ host: "evil-console.example.com" }, "host"],
  "localhost on a connection from elsewhere": [{ host: "localhost:7480", localAddress: "10.0.0.5" }, "host"],
  "another address": [{ host: "10.0.0.6:7480", localAddress: "10.0.0.5" }, "host"],
  "no host": [{ host: undefined }, "host"],
  "an empty host": [{ host: "" }, "host"],
  "a host with a user": [{ host: "localhost@evil.example" }, "host"],
  "a host with a path": [{ host: "localhost/evil.example" }, "host"],
  "the own page": [{ origin: "http://127.0.0.1:7480", fetchSite: "same-origin" }, null],
  "the own page behind a proxy that speaks TLS": [
    { host: "console.example.com", origin: "https://console.example.com", localAddress: "10.0.0.5" },
    null,
  ],
  "the own page, with the port of its scheme": [
    { host: "console.example.com", origin: "https://console.example.com:443", localAddress: "10.0.0.5" },
    null,
  ],
  "a page of a name that is listed": [{ origin: "https://console.example.com" }, null],
  "a page of another port of this machine": [{ origin: "http://127.0.0.1:3000" }, "origin"],
  "a page of another site": [{ origin: "https://evil.example" }, "origin"],
  "a page without an origin, such as one in a frame": [{ origin: "null" }, "origin"],
  "a page of a file": [{ origin: "file://" }, "origin"],
  "an extension": [{ origin: "chrome-extension://127.0.0.1:7480" }, "origin"],
  "an empty origin": [{ origin: "" }, "origin"],
  "a page of the same site": [{ fetchSite: "same-site" }, "origin"],
  "a page of another site that hides its origin": [{ fetchSite: "cross-site" }, "origin"],
  "an address that a person has typed": [{ fetchSite: "none" }, null],
  "a link of another site that is read": [
    { method: "GET", origin: "https://evil.example", fetchSite: "cross-site" },
    null,
  ],
  "a link to another name that is read": [{ method: "GET", host: "evil.example" }, "host"],
};

suite("a request is turned away or not", () => {
  for (const [name, [request, reason]] of Object.entries(cases)) {
    test(name, () => assert.equal(turnedAway({ ...POST, ...request }, NAMES)?.reason ?? null, reason));
  }
});

test("no request reaches the service by a host that is neither its address nor listed", () => {
  const host = fc.oneof(fc.domain(), fc.webAuthority(), fc.ipV4(), fc.string(), fc.constantFrom("localhost", "[::1]"));
  const own = new Set(["127.0.0.1", "localhost", "[::1]", "console.example.com"]);
  fc.assert(
    fc.property(host, fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: null }), (name, port) => {
      const sent = port === null ? name : `${name}:${port}`;
      const passes = turnedAway({ ...POST, host: sent }, NAMES) === null;
      const named = sent.toLowerCase().replace(/:\d{1,5}$/, "");
      assert.equal(passes, own.has(named) || sent.toLowerCase() === "other.example.com:8443");
    }),
  );
});

test("a host of GANGWAY_CONSOLE_HOSTS is a name with or without a port", () => {
  assert.deepEqual(["Console.example.com", "a:80", "[::1]:7480"].map(parseHost), [
    "console.example.com",
    "a:80",
    "[::1]:7480",
  ]);
  assert.deepEqual(["", "https://a", "a/b", "*.example.com", "a b", "a:b"].map(parseHost), [
    null,
    null,
    null,
    null,
    null,
    null,
  ]);
});

const TRUSTED = parseTrustedProxies("10.0.0.0/8, fd00::/8,192.0.2.1");
type Seen = readonly [from: string, forwarded: string | undefined, address: string];
const addresses: Readonly<Record<string, Seen>> = {
  "without a proxy it is the connection's": ["203.0.113.9", undefined, "203.0.113.9:1234"],
  "IPv6 stands in brackets": ["2001:db8::1", undefined, "[2001:db8::1]:1234"],
  "IPv4 on a socket of IPv6 is IPv4": ["::ffff:203.0.113.9", undefined, "203.0.113.9:1234"],
  "a header of a caller that is no proxy does not count": ["203.0.113.9", "198.51.100.7", "203.0.113.9:1234"],
  "a proxy names its caller": ["10.1.2.3", "198.51.100.7", "198.51.100.7"],
  "what the caller sent stands left of it, and does not count": ["10.1.2.3", "1.1.1.1, 198.51.100.7", "198.51.100.7"],
  "a chain of proxies is followed": ["10.1.2.3", "1.1.1.1, 198.51.100.7, 10.9.9.9", "198.51.100.7"],
  "a chain of proxies alone gives the first": ["10.1.2.3", "10.7.7.7, 10.9.9.9", "10.7.7.7"],
  "what is no address ends the chain": ["10.1.2.3", "unknown, 10.9.9.9", "10.9.9.9"],
  "a header without an address is passed over": ["10.1.2.3", "unknown", "10.1.2.3:1234"],
  "a port of a proxy's header is left out": ["10.1.2.3", "198.51.100.7:555", "198.51.100.7"],
  "IPv6 in brackets in a header": ["fd00::1", "[2001:db8::7]:555", "2001:db8::7"],
};

suite("the address of a caller", () => {
  for (const [name, [address, forwarded, expected]] of Object.entries(addresses)) {
    test(name, () => assert.equal(clientAddress({ address, port: 1234 }, forwarded, TRUSTED), expected));
  }
});

test("a caller never chooses the address that is recorded, whatever it sends through a proxy", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string())), (sent) => {
      const forwarded = [...sent, "203.0.113.9"].join(", ");
      assert.equal(clientAddress({ address: "10.1.2.3", port: 1 }, forwarded, TRUSTED), "203.0.113.9");
    }),
  );
});

test("a list of proxies with a wrong part is refused with that part", () => {
  for (const wrong of ["10.0.0.0/33", "10.0.0.0/8/8", "proxy.example.com", "::/129", "10.0.0.0/"]) {
    assert.throws(() => parseTrustedProxies(`10.0.0.1, ${wrong}`), new RegExp(`"${wrong.replaceAll(".", "\\.")}"`));
  }
});
