import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { redisCounters } from "../../src/adapters/counters/redis/redis-counters.ts";
import { waitUntil } from "../support/bounded.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import { RedisClusterServers } from "../support/redis-cluster.ts";
import { SentinelServers } from "../support/redis-sentinels.ts";
import { hasRedisServer, RedisServer } from "../support/redis-server.ts";
import { Callers, NOTE, noneTwice, openConnection, script } from "../tokens/calls.ts";
import { ceilings } from "../tokens/limits.ts";

/** The permissions that docs/operating.md asks for. */
const ACL_RULES = ["~{gangway:*", "&{gangway:*", "+@all", "-@dangerous", "+info", "+cluster|slots"];

describe("a connection to Redis", { skip: !hasRedisServer() }, () => {
  let server: RedisServer;
  before(async () => {
    server = await RedisServer.start();
  });
  after(() => server.stop());

  test("calls continue after a restart with the new run id, and none runs twice", async () => {
    const key = randomUUID();
    const connection = await openConnection({ url: server.url });
    const callers = new Callers(connection, key);
    await callers.answeredMore(20);
    const than = new Set(callers.runs);
    await server.kill();
    await server.start();
    await callers.answeredByAnother(than);
    await callers.answeredMore(20);
    await callers.stop();
    assert.equal(callers.runs.size, 2);
    noneTwice(await server.admin.lrange(key, 0, -1));
    await connection.close();
  });

  test("a server may forget its scripts at any time: no call is lost, and none runs twice", async () => {
    const key = randomUUID();
    const connection = await openConnection({ url: server.url });
    const callers = new Callers(connection, key);
    // Some of these come between the answer that a script is not known and the call that follows it.
    const forgetting = new AbortController();
    const forgets = (async () => {
      while (!forgetting.signal.aborted) await server.admin.script("FLUSH");
    })();
    await callers.answeredMore(300).finally(() => forgetting.abort());
    await forgets;
    await callers.answeredMore(10);
    await callers.stop();
    assert.equal(callers.lost, 0);
    const noted = await server.admin.lrange(key, 0, -1);
    assert.equal(noted.length, callers.answered);
    noneTwice(noted);
    await connection.close();
  });

  test("each listener of a channel gets its messages until it stops, also after a reconnection", async () => {
    const connection = await openConnection({ url: server.url });
    const channel = randomUUID();
    const heard: [string[], string[]] = [[], []];
    const stops = heard.map((messages) => connection.subscribe(channel, (message) => void messages.push(message)));
    const publish = async (message: string, until: () => boolean) => {
      const isHeard = async () => {
        await server.admin.publish(channel, message);
        return until();
      };
      await waitUntil(`${message} is heard`, isHeard, { pollMs: 5 });
    };
    await publish("first", () => heard.every((messages) => messages.includes("first")));
    await server.kill();
    await server.start();
    await publish("second", () => heard.every((messages) => messages.includes("second")));
    stops[0]?.();
    await publish("third", () => heard[1].includes("third"));
    assert.ok(!heard[0].includes("third"));
    stops[1]?.();
    const subscribers = async () => ((await server.admin.pubsub("NUMSUB", channel)) as [string, number])[1];
    await waitUntil("the channel has no subscriber", async () => (await subscribers()) === 0, { pollMs: 5 });
    await connection.close();
  });

  test("a start on a replica fails with a plain reason", async (t) => {
    const replica = await RedisServer.start(["--replicaof", "127.0.0.1", `${server.port}`]);
    t.after(() => replica.stop());
    await assert.rejects(openConnection({ url: replica.url }), /cannot be used now: it is a replica/);
  });

  test("a user with exactly the documented permissions is enough", async () => {
    await server.admin.call("ACL", "SETUSER", "gangway", "on", ">se:cret", ...ACL_RULES);
    const errors: Error[] = [];
    const onError = (error: Error) => void errors.push(error);
    const connection = await openConnection({ url: server.url, username: "gangway", password: "se:cret", onError });
    const key = `{gangway:${randomUUID()}:default}`;
    const reply = (await connection.run(NOTE, [key], (runId) => ["1", runId])) as [string, string];
    assert.equal(reply[0], reply[1]);
    const heard = new Promise<string>((resolve) => void connection.subscribe(`${key}:offers`, resolve));
    const telling = setInterval(() => void server.admin.publish(`${key}:offers`, "hello"), 5);
    assert.equal(await heard, "hello");
    clearInterval(telling);
    await assert.rejects(
      connection.run(NOTE, ["another's"], () => ["1"]),
      /Redis.*(NOPERM|No permissions)/i,
    );
    assert.deepEqual(errors, []);
    await connection.close();
  });

  test("without the permission to publish, a free still grants to the head of a waiting line", async () => {
    await server.admin.call("ACL", "SETUSER", "mute", "on", ">pw", "~*", "resetchannels", "+@all");
    const counters = await redisCounters({
      url: server.url,
      ...{ username: "mute", password: "pw" },
      installation: randomUUID(),
      domain: "default",
      onError: () => undefined,
      onWarning: (message) => assert.fail(message),
    });
    const limits = ceilings([{ queue: "q", pool: "p", limit: 1 }]);
    await counters.open(1, { rows: [], limits });
    const allocationOf = (token: string) => {
      const scope = { pool: "p", amount: 1, project: "p", namespace: "n", queue: "q", leaseMs: null };
      return { ...scope, token, caps: { project: null, namespace: null } };
    };
    const holder = { kind: "caller", name: "c" } as const;
    const first = { epoch: 1, holder, allocations: [allocationOf("first")], priority: 0, waiter: null };
    const granted = await counters.grant(first);
    assert.ok(granted.kind === "granted");
    const waiting = {
      epoch: 1,
      waiter: "w",
      holder,
      allocations: [allocationOf("second")],
      priority: 0,
      sinceMs: 1,
      grants: true,
    };
    assert.equal((await counters.stand(waiting)).kind, "waiting");
    assert.deepEqual(await counters.free(1, [{ pool: "p", token: "first", fence: granted.fence }]), ["freed"]);
    assert.equal((await counters.stand(waiting)).kind, "granted");
    assert.ok((await counters.used()).every(({ used }) => used === 1));
    await counters.close();
  });

  test("a forbidden channel is reported, and calls continue", async () => {
    await server.admin.call("ACL", "SETUSER", "deaf", "on", ">pw", "~*", "resetchannels", "+@all");
    const errors: Error[] = [];
    const onError = (error: Error) => void errors.push(error);
    const connection = await openConnection({ url: server.url, username: "deaf", password: "pw", onError });
    connection.subscribe("offers", () => undefined);
    await waitUntil("an error is reported", () => errors.length > 0, { pollMs: 5 });
    assert.match(errors[0]?.message ?? "", /cannot be subscribed to now: NOPERM/);
    const callers = new Callers(connection, randomUUID(), 1);
    await callers.answeredMore(2);
    await callers.stop();
    await connection.close();
  });
});

describe("Redis over TLS", { skip: !hasRedisServer() || !hasOpenssl() }, () => {
  let certificates: Certificates;
  let ca: string;
  let server: ReturnType<Certificates["sign"]>;
  let client: { cert: string; key: string };
  const none = { ca: null, cert: null, key: null, serverName: null };
  before(() => {
    certificates = new Certificates();
    ca = certificates.read(certificates.caFile);
    server = certificates.sign("server", "DNS:redis.example,IP:127.0.0.1");
    const { certFile, keyFile } = certificates.sign("client", "DNS:client.example");
    client = { cert: certificates.read(certFile), key: certificates.read(keyFile) };
  });
  after(() => certificates.remove());

  const tlsArgs = ({ certFile, keyFile } = server) => [
    ...["--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-ca-cert-file", certificates.caFile],
    ...["--tls-replication", "yes"],
  ];

  async function served(url: string, tls: typeof none | object): Promise<void> {
    const connection = await openConnection({ url, tls: { ...none, ...tls } });
    const callers = new Callers(connection, randomUUID(), 1);
    const heard = new Promise<string>((resolve) => void connection.subscribe("channel", resolve));
    await callers.answeredMore(2);
    await callers.stop();
    const hello = script("return redis.call('PUBLISH', 'channel', 'hello')");
    const telling = setInterval(() => void connection.run(hello, ["key"], () => []).catch(() => undefined), 20);
    assert.equal(await heard, "hello");
    clearInterval(telling);
    await connection.close();
  }

  test("the server's certificate is checked, and the client's is sent if the server requires one", async (t) => {
    const redis = await RedisServer.start(tlsArgs(), { tls: { ca, ...client } });
    t.after(() => redis.stop());
    const url = redis.url.replace("redis:", "rediss:");
    await served(url, { ca, ...client });
    await assert.rejects(openConnection({ url, tls: { ...none, ...client } }), /cannot be used now: .*certificate/);
    await assert.rejects(openConnection({ url, tls: { ...none, ca } }), /cannot be used now/);
    await assert.rejects(openConnection({ url: redis.url }), /cannot be used now/);
  });

  test("a certificate with another name is refused, unless that name is configured", async (t) => {
    const named = certificates.sign("named", "DNS:redis.example");
    const redis = await RedisServer.start(tlsArgs(named), { tls: { ca, ...client, servername: "redis.example" } });
    t.after(() => redis.stop());
    const url = redis.url.replace("redis:", "rediss:");
    await assert.rejects(openConnection({ url, tls: { ...none, ca, ...client } }), /does not match certificate/);
    await served(url, { ca, ...client, serverName: "redis.example" });
  });

  test("a Redis Cluster serves calls over TLS", async (t) => {
    const cluster = await RedisClusterServers.start([...tlsArgs(), "--tls-cluster", "yes"], { ca, ...client });
    t.after(() => cluster.stop());
    await served(cluster.url.replace("redis+", "rediss+"), { ca, ...client });
  });

  test("sentinels and their primary serve calls over TLS", async (t) => {
    const sentinels = await SentinelServers.start({ tls: { args: tlsArgs(), admin: { ca, ...client } } });
    t.after(() => sentinels.stop());
    await served(sentinels.url.replace("redis+", "rediss+"), { ca, ...client });
  });
});
