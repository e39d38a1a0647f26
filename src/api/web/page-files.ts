/** The files of the console's page, read once and kept in memory. */
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { answer, type WebResponse } from "./answers.ts";
import { headerOf } from "./call-metadata.ts";
import type { WebRequest } from "./read-request.ts";

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

/** True for requests of a browser that shows a page. The page's own script knows which paths have a view. */
export function asksForDocument(request: WebRequest): boolean {
  return (headerOf(request, "accept") ?? "").includes("text/html");
}

/** True for the path of a script, style or image. */
export function isAsset(path: string): boolean {
  return path.startsWith(`/${ASSETS}/`);
}

export function answerFile(request: WebRequest, response: WebResponse, file: PageFile): void {
  const takesBrotli = /(^|[\s,])br([\s,;]|$)/.test(headerOf(request, "accept-encoding") ?? "");
  response.setHeader("cache-control", file.caching);
  response.setHeader("vary", "accept, accept-encoding");
  if (takesBrotli) response.setHeader("content-encoding", "br");
  answer(response, { status: 200, contentType: file.contentType, body: takesBrotli ? file.brotli : file.body });
}
