/** Makes one file of the command line and the packages that it uses, without the service. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { type BuildOptions, build, type OutputFile, type Plugin, stop } from "esbuild";
import { type Inputs, inputsOf, writeWhole } from "./made-files.ts";
import { plainDescriptors } from "./plain-descriptors.ts";

export type BundleManifest = { readonly file: string; readonly inputs: Inputs };

const root = join(import.meta.dirname, "..");

/** The imports of src/main.ts that are parts of the service. bin/gangway.js does not run their commands from here. */
const SERVICE = /^\.\/(compose\/|config\.ts|adapters\/store\/)/;
/** Files beside the sources that the bundle depends on. */
const SETTINGS = [
  ...["package.json", "package-lock.json"],
  ...["deploy/bundle-cli.ts", "deploy/made-files.ts", "deploy/plain-descriptors.ts"],
];

const COMMON: BuildOptions & { readonly write: false } = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  target: "node24",
  minifyWhitespace: true,
  minifySyntax: true,
  logLevel: "silent",
  write: false,
};

/**
 * Writes the bundle and `manifest.json` to this folder. Several processes may do so at once: each file appears whole,
 * and the manifest last.
 */
export async function bundleCli(folder: string): Promise<BundleManifest> {
  const startedMs = Date.now();
  // The first pass drops what no command uses, which needs ES modules in many files. The second pass joins the files.
  const split = await build({
    ...COMMON,
    entryPoints: ["src/main.ts"],
    splitting: true,
    format: "esm",
    outdir: "dist",
    metafile: true,
    plugins: [withoutService, plainDescriptors, pathsFrom(folder)],
  });
  const joined = await build({
    ...COMMON,
    entryPoints: ["main.js"],
    format: "cjs",
    plugins: [inMemory(split.outputFiles)],
  });
  await stop();
  const text = joined.outputFiles[0]?.text ?? "";
  const file = `gangway-${createHash("sha256").update(text).digest("hex").slice(0, 16)}.cjs`;
  const sources = Object.keys(split.metafile.inputs).filter((path) => path.startsWith("src/"));
  const inputs = inputsOf([...SETTINGS, ...sources], startedMs);
  writeWhole(join(folder, file), text);
  writeWhole(join(folder, "manifest.json"), JSON.stringify({ file, inputs }));
  for (const name of readdirSync(folder)) {
    if (name.endsWith(".cjs") && name !== file) rmSync(join(folder, name), { force: true });
  }
  return { file, inputs };
}

const withoutService: Plugin = {
  name: "without-service",
  setup({ onResolve }) {
    onResolve({ filter: SERVICE }, ({ path, importer }) =>
      importer === join(root, "src", "main.ts") ? { path, external: true } : null,
    );
  },
};

/**
 * Makes expressions of a module's own place hold in the bundle, and packages that it requires a part of the bundle.
 * bin/bundle.js imports the modules whose names only the user knows.
 */
function pathsFrom(folder: string): Plugin {
  return {
    name: "paths",
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path }) => {
        const own = JSON.stringify(relative(folder, dirname(path)));
        const contents = readFileSync(path, "utf8")
          .replaceAll("import.meta.dirname", `require("node:path").join(__dirname, ${own})`)
          .replaceAll(/\bimport\((?=\w)/g, "importModule(")
          .replace("const require = createRequire(import.meta.url);", "");
        return { contents, loader: "ts" };
      });
    },
  };
}

/** Serves the files of the first pass to the second one. Everything that is not among them stays an import. */
function inMemory(files: readonly OutputFile[]): Plugin {
  const texts = new Map(files.map(({ path, text }) => [basename(path), text]));
  return {
    name: "in-memory",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /./ }, ({ path }) =>
        texts.has(basename(path)) ? { path: basename(path), namespace: "split" } : { path, external: true },
      );
      onLoad({ filter: /./, namespace: "split" }, ({ path }) => ({ contents: texts.get(path) ?? "", loader: "js" }));
    },
  };
}
