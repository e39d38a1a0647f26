import { constants } from "node:fs";
import { mkdir, open, realpath, rename, rm } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { OBJECT_BYTES_MAX } from "../../core/kinds/plugin-services.ts";
import { isMissingFile } from "../../runtime/missing-file.ts";

/** The file of a path below a folder. No link leads out of the folder: neither a folder's on the way nor the file's. */
export function fileObject(folder: string, path: string) {
  return {
    head: () => opened(folder, path, async ({ size }) => ({ bytes: size })),
    read: () =>
      opened(folder, path, async ({ size, readAll }) => {
        if (size > OBJECT_BYTES_MAX) throw new Error(`the object has more than ${OBJECT_BYTES_MAX} bytes`);
        return readAll();
      }),
    put: async (body: Uint8Array): Promise<void> => {
      await realFolder(folder, path);
      await mkdir(dirname(path), { recursive: true });
      const own = await realFolder(folder, path);
      if (own === null) throw new Error(`the folder of ${path} was deleted meanwhile`);
      const temporary = join(own, `.${basename(path)}.${process.pid}.${counter++}`);
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
      try {
        await using file = await open(temporary, flags, 0o600);
        await file.writeFile(body);
        await file.sync();
        await rename(temporary, join(own, basename(path)));
      } finally {
        await rm(temporary, { force: true });
      }
    },
    delete: async (): Promise<void> => {
      const own = await realFolder(folder, path);
      if (own !== null) await rm(join(own, basename(path)), { force: true });
    },
  };
}

let counter = 0;

type Opened = { readonly size: number; readonly readAll: () => Promise<Uint8Array> };

/** Null: there is no such file. */
async function opened<T>(folder: string, path: string, use: (file: Opened) => Promise<T>): Promise<T | null> {
  const own = await realFolder(folder, path);
  if (own === null) return null;
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(join(own, basename(path)), flags).catch(missing);
  if (handle === null) return null;
  await using file = handle;
  const stat = await file.stat();
  if (!stat.isFile()) throw new Error(`${path} is no file`);
  return await use({ size: stat.size, readAll: () => file.readFile() });
}

/**
 * The real folder of a path, with links followed. Null: it does not exist.
 * @throws Error if it, or the nearest folder above it that exists, is not below the folder.
 */
async function realFolder(folder: string, path: string): Promise<string | null> {
  const root = await realpath(folder);
  const own = dirname(path);
  let at = own;
  let real = await realpath(at).catch(missing);
  while (real === null) {
    at = dirname(at);
    real = await realpath(at).catch(missing);
  }
  if (real !== root && !real.startsWith(root + sep)) throw new Error(`${path} is not in ${folder}`);
  return at === own ? real : null;
}

function missing(error: unknown): null {
  if (isMissingFile(error)) return null;
  throw error;
}
