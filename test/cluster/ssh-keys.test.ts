import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { test } from "node:test";
import { sshSecretData } from "../../src/adapters/cluster/ssh-keys.ts";

/** The strings of a key in the protocol of SSH (RFC 4253). */
function stringsOf(blob: Buffer): readonly Buffer[] {
  const strings: Buffer[] = [];
  for (let at = 0; at < blob.length; ) {
    const length = blob.readUInt32BE(at);
    strings.push(blob.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return strings;
}

test("the public key is that of the private one, as sshd reads it", async () => {
  const data = await sshSecretData();
  const text = (key: keyof typeof data) => Buffer.from(data[key], "base64").toString();
  const pem = text("ssh-privatekey");
  assert.match(pem, /^-----BEGIN EC PRIVATE KEY-----\n/);
  const privateKey = createPrivateKey(pem);
  const [type, blob = "", ...rest] = text("ssh-publickey").trim().split(" ");
  assert.deepEqual([type, rest], ["ecdsa-sha2-nistp521", []]);
  const [named, curve, point = Buffer.alloc(0), ...more] = stringsOf(Buffer.from(blob, "base64"));
  assert.deepEqual([named?.toString(), curve?.toString(), point.length, more.length], [type, "nistp521", 133, 0]);
  const [x, y] = [point.subarray(1, 67), point.subarray(67)].map((half) => half.toString("base64url"));
  const publicKey = createPublicKey({ format: "jwk", key: { kty: "EC", crv: "P-521", x: x!, y: y! } });
  const message = Buffer.from("hello");
  assert.ok(verify("sha512", message, publicKey, sign("sha512", message, privateKey)));
});

test("two admissions have different keys", async () => {
  const [one, other] = await Promise.all([sshSecretData(), sshSecretData()]);
  assert.notEqual(one["ssh-privatekey"], other["ssh-privatekey"]);
});
