/** Keys by which the launcher of an MPI job reaches its nodes. They exist in their cluster alone. */
import { generateKeyPair } from "node:crypto";
import { promisify } from "node:util";

const CURVE = "P-521";
/** The names of the curve and of its keys in the protocol of SSH (RFC 5656). */
const SSH_CURVE = "nistp521";
const SSH_TYPE = `ecdsa-sha2-${SSH_CURVE}`;
const UNCOMPRESSED_POINT = Buffer.from([4]);

/** The data of a Secret of the type `kubernetes.io/ssh-auth`, in base64, with the public key beside the private one. */
export async function sshSecretData(): Promise<{ readonly [key in "ssh-privatekey" | "ssh-publickey"]: string }> {
  const { privateKey, publicKey } = await promisify(generateKeyPair)("ec", { namedCurve: CURVE });
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  const point = Buffer.concat([UNCOMPRESSED_POINT, Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]);
  const blob = Buffer.concat([SSH_TYPE, SSH_CURVE, point].map(sshString)).toString("base64");
  return {
    "ssh-privatekey": base64(privateKey.export({ format: "pem", type: "sec1" }).toString()),
    "ssh-publickey": base64(`${SSH_TYPE} ${blob}\n`),
  };
}

/** A string of the protocol of SSH: its length in four bytes, then its bytes (RFC 4251). */
function sshString(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
