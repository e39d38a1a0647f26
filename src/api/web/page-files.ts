/** Serves the files of the console's page, which are read once and kept in memory. */
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { answer, type WebResponse } from "./answers.ts";
import { headerOf } from "./call-metadata.ts";
import type { WebRequest } from "./read-request.ts";
import { type Refused, UNKNOWN_PATH, wrongMethod } from "./refused.ts";

export type PageFiles = {
  /** The document, which every view of the page has. */
  readonly document: PageFile;
  /** Scripts, styles and images by path. Their names change with their content. */
  readonly assets: ReadonlyMap<string, PageFile>;
};

type PageFile = {
  readonly contentType: string;
  readonly body: Buffer;
  readonly brotli: Buffer;
  readonly caching: string;
};

/** Resolves with the files of the page. Throws an error that says why there are none. */
export type LoadPage = () => Promise<PageFiles>;

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
const COMPRESSED = ".br";
const ASSETS = "assets";
/** A browser asks each time for the document, and never again for an asset. */
const DOCUMENT_CACHING = "no-cache";
const ASSET_CACHING = "public, max-age=31536000, immutable";

/** Reads the folder that `deploy/build-console.ts` has made. */
export async function readPageFiles(folder: string): Promise<PageFiles> {
  const read = async (path: string, caching: string): Promise<PageFile> => ({
    contentType: CONTENT_TYPES[extname(path)] ?? "application/octet-stream",
    body: await readFile(path),
    brotli: await readFile(`${path}${COMPRESSED}`),
    caching,
  });
  const names = (await readdir(join(folder, ASSETS))).filter((name) => extname(name) in CONTENT_TYPES);
  const assets = names.map(
    async (name) => [`/${ASSETS}/${name}`, await read(join(folder, ASSETS, name), ASSET_CACHING)] as const,
  );
  return {
    document: await read(join(folder, "index.html"), DOCUMENT_CACHING),
    assets: new Map(await Promise.all(assets)),
  };
}

/** True for the requests of a browser that shows a page. The page's own script knows which paths have a view. */
export function isOfPage(path: string, request: WebRequest): boolean {
  return isAsset(path) || (headerOf(request, "accept") ?? "").includes("text/html");
}

function isAsset(path: string): boolean {
  return path.startsWith(`/${ASSETS}/`);
}

type Asked = { readonly path: string; readonly request: WebRequest; readonly response: WebResponse };

/** Answers a request for the page or one of its files, or says why it is turned away. */
export async function servePage({ path, request, response }: Asked, load: LoadPage | null): Promise<Refused | null> {
  if (load === null) return UNKNOWN_PATH;
  if (request.method !== "GET" && request.method !== "HEAD") return wrongMethod(path, "GET, HEAD");
  let files: PageFiles;
  try {
    files = await load();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const body = `The page of the console cannot be shown; RPCs are served as always. The reason: ${why}\n`;
    answer(response, { status: 503, contentType: "text/plain; charset=utf-8", body });
    return null;
  }
  const file = isAsset(path) ? files.assets.get(path) : files.document;
  if (file === undefined) return UNKNOWN_PATH;
  answerFile(request, response, file);
  return null;
}

function answerFile(request: WebRequest, response: WebResponse, file: PageFile): void {
  const takesBrotli = /(^|[\s,])br([\s,;]|$)/.test(headerOf(request, "accept-encoding") ?? "");
  response.setHeader("cache-control", file.caching);
  response.setHeader("vary", "accept, accept-encoding");
  if (takesBrotli) response.setHeader("content-encoding", "br");
  answer(response, { status: 200, contentType: file.contentType, body: takesBrotli ? file.brotli : file.body });
}
