import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_CLUSTER_HOSTS, parseAllowedHosts } from "../../src/adapters/cluster/allowed-hosts.ts";

const CLOSED = "*.k8s.example.com, api.other ,10.20.0.0/16,fd12::/16";

const judged: Record<string, { list: string; host: string; address: string; says: RegExp | null }> = {
  "any host by default": { list: DEFAULT_CLUSTER_HOSTS, host: "a.example", address: "203.0.113.9", says: null },
  "a private address by default": { list: DEFAULT_CLUSTER_HOSTS, host: "a", address: "10.1.2.3", says: null },
  "this machine by default": { list: DEFAULT_CLUSTER_HOSTS, host: "localhost", address: "127.0.0.1", says: null },
  "this machine over IPv6": { list: DEFAULT_CLUSTER_HOSTS, host: "localhost", address: "::1", says: null },
  "metadata of a cloud": {
    list: DEFAULT_CLUSTER_HOSTS,
    host: "metadata.google.internal",
    address: "169.254.169.254",
    says: /^leads to a link-local address: GANGWAY_CLUSTER_HOSTS must list a range inside 169\.254\.0\.0\/16/,
  },
  "a name below a suffix": { list: CLOSED, host: "East.K8s.Example.com.", address: "203.0.113.9", says: null },
  "the suffix itself": { list: CLOSED, host: "k8s.example.com", address: "203.0.113.9", says: /which lists \*\.k8s/ },
  "a name that only ends like it": {
    list: CLOSED,
    host: "xk8s.example.com",
    address: "203.0.113.9",
    says: /not allowed/,
  },
  "a listed name": { list: CLOSED, host: "api.other", address: "192.168.1.1", says: null },
  "a listed name that leads to this machine": {
    list: CLOSED,
    host: "api.other",
    address: "127.0.0.1",
    says: /leads to a loopback address/,
  },
  "a listed range": { list: CLOSED, host: "anything", address: "10.20.3.4", says: null },
  "a listed range in IPv6's form": { list: CLOSED, host: "anything", address: "::ffff:10.20.3.4", says: null },
  "a listed range of IPv6": { list: CLOSED, host: "anything", address: "fd12:3::4", says: null },
  "an address outside": {
    list: CLOSED,
    host: "anything",
    address: "10.21.0.1",
    says: /is not allowed by GANGWAY_CLUSTER/,
  },
  "a wide range does not allow metadata": { list: "0.0.0.0/0", host: "a", address: "169.254.1.1", says: /link-local/ },
  "a narrow range allows link-local addresses": {
    list: "169.254.7.0/24",
    host: "a",
    address: "169.254.7.1",
    says: null,
  },
  "an empty list allows nothing": { list: "", host: "a", address: "203.0.113.9", says: /not allowed/ },
  "any host without this machine": {
    list: "*",
    host: "localhost",
    address: "127.0.0.1",
    says: /a range inside 127\.0\.0\.0/,
  },
};
for (const [name, { list, host, address, says }] of Object.entries(judged)) {
  test(`hosts of clusters: ${name} is ${says === null ? "allowed" : "refused"}`, () => {
    const refusal = parseAllowedHosts(list).refusal(host, address);
    if (says === null) assert.equal(refusal, null);
    else assert.match(refusal ?? "", says);
  });
}

const disguises = [
  "::ffff:a9fe:a9fe",
  "::ffff:169.254.169.254",
  "::a9fe:a9fe",
  "64:ff9b::a9fe:a9fe",
  "2002:a9fe:a9fe::1",
  "fe80::1%eth0",
  "febf::1",
  "fd00:ec2::254",
  "100.100.100.200",
  "168.63.129.16",
  "0.0.0.0",
  "0.1.2.3",
  "::",
  "::ffff:0.0.0.0",
  "224.0.0.1",
  "ff02::1",
  "255.255.255.255",
];
for (const address of disguises) {
  test(`by default no cluster is reached at ${address}`, () => {
    assert.notEqual(parseAllowedHosts(DEFAULT_CLUSTER_HOSTS).refusal("a.example", address), null);
  });
}

for (const part of ["10.0.0.0/33", "http://a", "a b", "*.", "a:6443", "1.2.3", "[::1]", "**", "a/8", "::1/129", "*a"]) {
  test(`${part} is no host and no range`, () => {
    assert.throws(() => parseAllowedHosts(`a.example,${part}`), /is no host, no \*\.SUFFIX, no address and no range/);
  });
}
