/**
 * Makes the page of the console: `index.html`, and scripts and styles under names that change with their content. Each
 * file also has its compressed form beside it.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import { build, stop } from "esbuild";
import { type Inputs, inputsOf, isCurrent, writeWhole } from "./made-files.ts";
import { plainDescriptors } from "./plain-descriptors.ts";

const root = join(import.meta.dirname, "..");
const compress = promisify(brotliCompress);

/** Files beside the sources that the page depends on. */
const SETTINGS = [
  ...["package.json", "package-lock.json", "console/index.html"],
  ...["deploy/build-console.ts", "deploy/made-files.ts", "deploy/plain-descriptors.ts"],
];
const MANIFEST = "manifest.json";
const ASSETS = "assets";

/** Returns the folder of the page of this clone. Makes it first if a source has changed since it was made. */
export async function currentConsole(): Promise<string> {
  const folder = join(root, "node_modules", ".gangway", "console");
  if (!isMade(folder)) await buildConsole(folder);
  return folder;
}

function isMade(folder: string): boolean {
  try {
    return isCurrent((JSON.parse(readFileSync(join(folder, MANIFEST), "utf8")) as { readonly inputs: Inputs }).inputs);
  } catch {
    return false;
  }
}

/**
 * Several processes may write the same folder at once: each file appears whole, and `index.html` after the files that
 * it names.
 */
export async function buildConsole(folder: string): Promise<void> {
  const startedMs = Date.now();
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { readonly version: string };
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: ["console/src/main.tsx", "console/src/icon.svg"],
    outdir: ASSETS,
    entryNames: "[name]-[hash]",
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2024",
    jsx: "automatic",
    minify: true,
    loader: { ".svg": "copy" },
    define: { "process.env.NODE_ENV": '"production"', GANGWAY_VERSION: JSON.stringify(version) },
    plugins: [plainDescriptors],
    metafile: true,
    write: false,
    logLevel: "silent",
  });
  await stop();
  mkdirSync(join(folder, ASSETS), { recursive: true });
  const files = outputFiles.map(({ path, contents }) => ({ name: basename(path), contents }));
  for (const { name, contents } of files) await writeBoth(join(folder, ASSETS, name), contents);
  await writeBoth(join(folder, "index.html"), pageOf(files.map(({ name }) => name)));
  const sources = Object.keys(metafile.inputs).filter((path) => /^(console|src)\//.test(path));
  writeWhole(join(folder, MANIFEST), JSON.stringify({ inputs: inputsOf([...SETTINGS, ...sources], startedMs) }));
  for (const name of readdirSync(join(folder, ASSETS))) {
    const isOld = !files.some((file) => name.startsWith(file.name));
    if (isOld) rmSync(join(folder, ASSETS, name), { force: true });
  }
}

/** The page, with the names that its files have this time. */
function pageOf(names: readonly string[]): Uint8Array {
  const page = readFileSync(join(root, "console/index.html"), "utf8").replaceAll(
    /\/assets\/([a-z-]+)\.(js|css|svg)/g,
    (_path, stem: string, ending: string) => {
      const name = names.find((one) => one.startsWith(`${stem}-`) && one.endsWith(`.${ending}`));
      if (name === undefined)
        throw new Error(`console/index.html names ${stem}.${ending}, which the build did not make`);
      return `/${ASSETS}/${name}`;
    },
  );
  return Buffer.from(page);
}

async function writeBoth(path: string, contents: Uint8Array): Promise<void> {
  writeWhole(path, contents);
  writeWhole(`${path}.br`, await compress(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
}
