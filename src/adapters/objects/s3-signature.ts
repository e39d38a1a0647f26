/** Signs requests to servers with the protocol of S3, as AWS' own clients do. */
import { createHash, createHmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";

export type S3Request = {
  readonly method: string;
  readonly host: string;
  /** Without escapes. Begins with a slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
};

export type S3Credentials = {
  readonly accessKey: string;
  readonly secretKey: string;
  /** Null: none. */
  readonly sessionToken: string | null;
  readonly region: string;
};

/** The headers of a signed request, `authorization` among them, without `host`. `nowMs`: the time on the wall. */
export async function signedHeaders(
  { method, host, path, headers, body }: S3Request,
  { accessKey, secretKey, sessionToken, region }: S3Credentials,
  nowMs: number,
): Promise<Readonly<Record<string, string>>> {
  const token = sessionToken === null ? {} : { sessionToken };
  const signer = new SignatureV4({
    service: "s3",
    region,
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey, ...token },
    sha256: Sha256,
    // The path is escaped here, and S3 signs it as it is sent.
    uriEscapePath: false,
    applyChecksum: true,
  });
  const signed = await signer.sign(
    { method, protocol: "https:", hostname: host, path: escapedPath(path), headers: { ...headers, host }, body },
    { signingDate: new Date(nowMs) },
  );
  const { host: _host, ...sent } = signed.headers;
  return sent;
}

/** A path as it is sent and signed: every byte but letters, digits and `-._~/` is escaped. */
export function escapedPath(path: string): string {
  const escaped = (one: string) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`;
  return path
    .split("/")
    .map((segment) => encodeURIComponent(segment).replace(/[!'()*]/g, escaped))
    .join("/");
}

type Bytes = string | ArrayBuffer | ArrayBufferView;

/** SHA-256, or with a key its HMAC, in the form that the signer takes. */
class Sha256 {
  readonly #hash: ReturnType<typeof createHash> | ReturnType<typeof createHmac>;

  constructor(key?: Bytes) {
    this.#hash = key === undefined ? createHash("sha256") : createHmac("sha256", bufferOf(key));
  }

  update(data: Bytes): void {
    this.#hash.update(bufferOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error("a hash is made for each digest");
  }
}

function bufferOf(data: Bytes): Buffer {
  if (typeof data === "string") return Buffer.from(data, "utf8");
  return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
}
