import type { ObjectName, ObjectPlace } from "../../core/admin/object-places.ts";
import type { SecretManager } from "../../core/kinds/plugin.ts";
import { OBJECT_BYTES_MAX } from "../../core/kinds/plugin-services.ts";
import { foreignText } from "../../runtime/foreign-text.ts";
import { escapedPath, type S3Credentials, signedHeaders } from "./s3-signature.ts";

/** So much is read of the body of a refusal: its code is at the beginning. */
const ERROR_BYTES_MAX = 4_096;
const CODE_BYTES_MAX = 128;
const NOTHING = new Uint8Array();

export type S3Ports = {
  readonly secrets: SecretManager;
  /** The time on the wall, which the server compares with its own. */
  readonly nowMs: () => number;
};

type Answer = { readonly status: number; readonly headers: Headers; readonly body: Uint8Array };

/** The object of a name in a bucket. */
export function s3Object(
  { secrets, nowMs }: S3Ports,
  place: ObjectPlace,
  { bucket, path }: ObjectName,
  signal: AbortSignal,
) {
  const base = new URL(place.endpoint ?? `https://s3.${place.region}.amazonaws.com`);
  const key = `/${bucket}${path}`;
  const send = async (method: string, bytesMax: number, body: Uint8Array = NOTHING): Promise<Answer> => {
    const credentials = await credentialsOf(place, secrets);
    const request = { method, host: base.host, path: key, headers: {}, body };
    const headers = credentials === null ? {} : await signedHeaders(request, credentials, nowMs());
    const sent = method === "PUT" ? { body: new Uint8Array(body) } : {};
    const url = `${base.origin}${escapedPath(key)}`;
    const answer = await fetch(url, { method, headers, signal, redirect: "manual", ...sent });
    const isGood = answer.ok || answer.status === 404;
    const whole = await bodyOf(answer, isGood ? bytesMax : ERROR_BYTES_MAX, isGood);
    return { status: answer.status, headers: answer.headers, body: whole };
  };
  const must = ({ status, body }: Answer, what: string) => {
    if (status >= 200 && status < 300) return;
    const code = codeIn(Buffer.from(body).toString("utf8"));
    throw new Error(`s3://${bucket}${path} cannot be ${what}: the server answered ${status}${code}`);
  };
  return {
    head: async () => {
      const answer = await send("HEAD", 0);
      if (answer.status === 404) return null;
      must(answer, "looked at");
      return { bytes: Number(answer.headers.get("content-length") ?? 0) };
    },
    read: async () => {
      const answer = await send("GET", OBJECT_BYTES_MAX);
      if (answer.status === 404) return null;
      must(answer, "read");
      return answer.body;
    },
    put: async (body: Uint8Array): Promise<void> => must(await send("PUT", ERROR_BYTES_MAX, body), "written"),
    delete: async (): Promise<void> => {
      const answer = await send("DELETE", ERROR_BYTES_MAX);
      if (answer.status !== 404) must(answer, "deleted");
    },
  };
}

async function credentialsOf(place: ObjectPlace, secrets: SecretManager): Promise<S3Credentials | null> {
  const { accessKeySecret, secretKeySecret, sessionTokenSecret, region } = place;
  if (accessKeySecret === null || secretKeySecret === null) return null;
  const [accessKey, secretKey, sessionToken] = await Promise.all([
    secrets.get(accessKeySecret),
    secrets.get(secretKeySecret),
    sessionTokenSecret === null ? null : secrets.get(sessionTokenSecret),
  ]);
  return { accessKey, secretKey, sessionToken, region };
}

/** Reads a body up to a size. `isWhole`: a longer one is an error; else its beginning is enough. */
async function bodyOf(answer: Response, bytesMax: number, isWhole: boolean): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    chunks.push(chunk.subarray(0, bytesMax - bytes));
    bytes += chunk.byteLength;
    if (bytes <= bytesMax) continue;
    if (isWhole && answer.status !== 404) throw new Error(`the object has more than ${bytesMax} bytes`);
    break;
  }
  return Buffer.concat(chunks);
}

/** The code of a refusal, ` (AccessDenied)`. Empty: the answer has none. */
function codeIn(text: string): string {
  const from = text.indexOf("<Code>");
  const to = text.indexOf("</Code>", from);
  return from < 0 || to < 0 ? "" : ` (${foreignText(text.slice(from + "<Code>".length, to), CODE_BYTES_MAX)})`;
}
