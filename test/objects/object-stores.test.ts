import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { objectStores } from "../../src/adapters/objects/object-stores.ts";
import { escapedPath, signedHeaders } from "../../src/adapters/objects/s3-signature.ts";
import { type ObjectPlace, objectNameOf, placeOfObject, readObjectPlaces } from "../../src/core/admin/object-places.ts";
import { OBJECT_BYTES_MAX } from "../../src/core/kinds/plugin-services.ts";
import type { Json } from "../../src/runtime/json.ts";
import { objectServerBuilt } from "./build.ts";
import { startObjectServer } from "./object-server.ts";

const directory = mkdtempSync(join(tmpdir(), "gangway-objects-"));
after(() => rmSync(directory, { recursive: true, force: true }));

function placesOf(stores: Json): readonly ObjectPlace[] {
  const outcome = readObjectPlaces({ stores });
  assert.ok(outcome.kind === "read", JSON.stringify(outcome));
  return outcome.value;
}

const SECRETS: Readonly<Record<string, string>> = { id: "access", key: "hidden" };
const secrets = { get: async (name: string) => SECRETS[name] ?? assert.fail(`there is no secret ${name}`) };
const open = (stores: Json, namespace = "team") =>
  objectStores(placesOf(stores), { secrets, nowMs: Date.now })(namespace, new AbortController().signal);

test("whatever a URL says, what is reached lies in a place that is open for the namespace", () => {
  const segment = fc.constantFrom("..", ".", "%2e%2e", "%2E.", "a", "team", "%2F", "..%2f..", "b c", "", "%00", "é");
  const url = fc
    .tuple(fc.constantFrom("s3://bucket-a", "s3://bucket-b", "file://", "file:///", "http://x"), fc.array(segment))
    .map(([root, segments]) => [root, ...segments].join("/"));
  const places = placesOf([
    { url: "s3://bucket-a/team/", namespaces: ["team"] },
    { url: "s3://bucket-a/team/a/", namespaces: ["other"] },
    { url: "file:///a/" },
  ]);
  fc.assert(
    fc.property(url, fc.constantFrom("team", "other"), (text, namespace) => {
      const name = objectNameOf(text);
      if (name === null) return;
      const place = placeOfObject(places, { namespace, name });
      assert.doesNotMatch(name.path, /(^|\/)\.\.?(\/|$)/);
      if (place === null) return;
      assert.ok(place.namespaces === null || place.namespaces.includes(namespace));
      const root = objectNameOf(place.url);
      assert.ok(root?.bucket === name.bucket && name.path.startsWith(root.path) && name.path !== root.path);
    }),
    { numRuns: 2_000 },
  );
});

test("the longest place of a namespace counts", () => {
  const places = placesOf([
    { url: "s3://bucket-a/" },
    { url: "s3://bucket-a/team/", region: "eu-west-1" },
    { url: "s3://bucket-a/team/models/", namespaces: ["other"], region: "eu-north-1" },
  ]);
  const regionOf = (url: string, namespace: string) =>
    placeOfObject(places, { namespace, name: objectNameOf(url) ?? assert.fail() })?.region;
  assert.equal(regionOf("s3://bucket-a/x", "team"), "us-east-1");
  assert.equal(regionOf("s3://bucket-a/team/models/x", "team"), "eu-west-1");
  assert.equal(regionOf("s3://bucket-a/team/models/x", "other"), "eu-north-1");
  assert.equal(regionOf("s3://bucket-c/x", "team"), undefined);
});

const refusals: Readonly<Record<string, { readonly stores: Json; readonly errors: readonly string[] }>> = {
  "a place without a slash at its end": {
    stores: [{ url: "s3://bucket/folder" }],
    errors: [
      'stores[0].url is "s3://bucket/folder": must be like s3://bucket/folder/ or file:///folder/, with / at its end',
    ],
  },
  "a misspelt member, and one key without the other": {
    stores: [{ url: "s3://bucket/", acessKeySecret: "id", secretKeySecret: "key" }],
    errors: [
      "stores[0].acessKeySecret is unknown: did you mean accessKeySecret?",
      "stores[0] must name both accessKeySecret and secretKeySecret",
    ],
  },
  "a secret's value in the place of its name": {
    stores: [{ url: "s3://bucket/", accessKeySecret: "a/b+c", secretKeySecret: "key" }],
    errors: [
      "stores[0].accessKeySecret must be the name of a secret, not its value",
      "stores[0] must name both accessKeySecret and secretKeySecret",
    ],
  },
  "an endpoint with credentials, and namespaces that are no list": {
    stores: [{ url: "s3://bucket/", endpoint: "https://me:pw@s3.example.com", namespaces: "team" }],
    errors: [
      "stores[0].endpoint must be like https://s3.example.com:9000, without a path and without credentials",
      "stores[0].namespaces must be a list of namespaces",
    ],
  },
};
for (const [name, { stores, errors }] of Object.entries(refusals)) {
  test(`refused: ${name}`, () => assert.deepEqual(readObjectPlaces({ stores }), { kind: "refused", errors }));
}

test("a request is signed as AWS signs its own example", async () => {
  const request = {
    method: "GET",
    host: "examplebucket.s3.amazonaws.com",
    path: "/test.txt",
    headers: { range: "bytes=0-9" },
    body: new Uint8Array(),
  };
  const credentials = {
    accessKey: "AKIAIOSFODNN7EXAMPLE",
    secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    sessionToken: null,
    region: "us-east-1",
  };
  assert.equal(
    (await signedHeaders(request, credentials, Date.UTC(2013, 4, 24)))["authorization"],
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, " +
      "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, " +
      "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  );
  assert.equal(escapedPath("/a b/é(1)+.txt"), "/a%20b/%C3%A9%281%29%2B.txt");
});

/** What every store does with the objects of a place. */
async function storesObjects(stores: Json, root: string): Promise<void> {
  const store = open(stores);
  const url = `${root}reports/ä%20b.json`;
  assert.deepEqual([await store.head(url), await store.read(url)], [null, null]);
  await store.delete(url);
  await store.write(url, '{"mean":0.5}');
  assert.deepEqual(await store.head(url), { bytes: 12 });
  await store.write(url, new Uint8Array([0, 1, 255]));
  assert.deepEqual([...((await store.read(url)) ?? [])], [0, 1, 255]);
  await store.write(url, "");
  assert.deepEqual(await store.head(url), { bytes: 0 });
  await store.delete(url);
  assert.equal(await store.read(url), null);
  await assert.rejects(store.write(url, new Uint8Array(OBJECT_BYTES_MAX + 1)), /an object may have 10485760/);
  await assert.rejects(store.read(root.replace(/.$/, "-not/x")), /is in no place that is open for namespace team/);
  await assert.rejects(open(stores, "stranger").read(url), /is in no place that is open for namespace stranger/);
}

test("objects of a folder are files", async () => {
  const folder = join(directory, "files");
  mkdirSync(folder);
  await storesObjects([{ url: `file://${folder}/`, namespaces: ["team"] }], `file://${folder}/`);
  assert.deepEqual(readdirSync(join(folder, "reports")), [], "no temporary file is left");
});

test("no link leads out of a folder, and no file that is too large is read", async () => {
  const folder = join(directory, "linked");
  const outside = join(directory, "outside");
  for (const one of [folder, outside]) mkdirSync(one);
  writeFileSync(join(outside, "secret"), "hidden");
  symlinkSync(outside, join(folder, "way"));
  symlinkSync(join(outside, "secret"), join(folder, "file"));
  writeFileSync(join(folder, "large"), new Uint8Array(OBJECT_BYTES_MAX + 1));
  const store = open([{ url: `file://${folder}/` }]);
  await assert.rejects(store.read(`file://${folder}/way/secret`), /is not in/);
  await assert.rejects(store.write(`file://${folder}/way/new/deep`, "x"), /is not in/);
  await assert.rejects(store.delete(`file://${folder}/way/secret`), /is not in/);
  await assert.rejects(store.read(`file://${folder}/file`), /ELOOP/);
  await assert.rejects(store.read(`file://${folder}/large`), /more than 10485760 bytes/);
  await store.write(`file://${folder}/file`, "own");
  assert.equal(readFileSync(join(outside, "secret"), "utf8"), "hidden", "a link is replaced, not followed");
  assert.deepEqual(readdirSync(outside), ["secret"]);
});

test("a server that refuses is quoted by its code, and one that sends too much is cut off", async (t) => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.authorization?.slice(0, 60)}`);
    if (request.url?.endsWith("denied")) {
      response.writeHead(403).end(`<Error><Code>AccessDenied</Code>${"x".repeat(100_000)}</Error>`);
      return;
    }
    response.writeHead(200);
    const chunk = new Uint8Array(1024 * 1024);
    const more = () => {
      while (!response.destroyed && response.write(chunk));
      response.once("drain", more);
    };
    more();
  }).listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const { port } = server.address() as { readonly port: number };
  const stores = [
    { url: "s3://bucket/", endpoint: `http://127.0.0.1:${port}`, accessKeySecret: "id", secretKeySecret: "key" },
  ];
  const store = open(stores);
  await assert.rejects(
    store.write("s3://bucket/denied", "x"),
    /cannot be written: the server answered 403 \(AccessDenied\)$/,
  );
  await assert.rejects(store.read("s3://bucket/endless"), /the object has more than 10485760 bytes/);
  const signed = "AWS4-HMAC-SHA256 Credential=access/";
  assert.deepEqual(
    seen.map((line) => line.slice(0, line.indexOf("access/") + "access/".length)),
    [`PUT /bucket/denied ${signed}`, `GET /bucket/endless ${signed}`],
  );
});

test("objects of a bucket, on a real server of S3's protocol", {
  skip: !objectServerBuilt() && "npm run objects:build",
}, async () => {
  await using server = await startObjectServer("team-bucket");
  const place = { url: "s3://team-bucket/results/", endpoint: server.endpoint, namespaces: ["team"] };
  const stores = [{ ...place, accessKeySecret: "id", secretKeySecret: "key" }];
  await storesObjects(stores, "s3://team-bucket/results/");
});
