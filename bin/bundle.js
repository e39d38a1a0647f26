/**
 * Runs the command line from one file. Loading its modules one by one takes longer than most commands. The file is
 * `manifest.file` in a folder: `dist/bundle` of a package, `node_modules/.gangway` of a clone, where the first call
 * after a change makes it again.
 */
const {
  accessSync,
  constants: modes,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} = require("node:fs");
const { createRequire } = require("node:module");
const { dirname, join } = require("node:path");
const { pathToFileURL } = require("node:url");
const { Script } = require("node:vm");

/** The bytes at the start of a file of compiled code that name the bundle and the Node that it belongs to. */
const LABEL_BYTES = 64;
/** The exit status of a wrong command line, which may name a command that does not exist. */
const USAGE = 2;

/**
 * Resolves with the function that runs the command line; null if there is no bundle and none can be made. Keeps
 * compiled code in the folder `cache`, if there is one.
 */
exports.loadBundle = async (root, cache) => {
  try {
    const file = existsSync(join(root, "src")) ? await currentBundle(root) : packedBundle(root);
    return compile(file, cache);
  } catch {
    return null;
  }
};

function packedBundle(root) {
  const folder = join(root, "dist", "bundle");
  return join(folder, manifestOf(folder).file);
}

async function currentBundle(root) {
  const folder = join(root, "node_modules", ".gangway");
  let manifest = manifestOf(folder);
  if (manifest === null || !isCurrent(manifest, root)) {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, modes.W_OK);
    const { bundleCli } = await import(pathToFileURL(join(root, "deploy", "bundle-cli.ts")).href);
    manifest = await bundleCli(folder);
  }
  return join(folder, manifest.file);
}

function manifestOf(folder) {
  const path = join(folder, "manifest.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

/** True while every file that the bundle was made from is as it was. */
function isCurrent({ inputs }, root) {
  return Object.entries(inputs).every(([path, [mtimeMs, size]]) => {
    const stat = statSync(join(root, path), { throwIfNoEntry: false });
    return stat?.mtimeMs === mtimeMs && stat.size === size;
  });
}

/**
 * Compiles the bundle, and keeps the compiled code for the next call of the same command. Node's own cache would keep
 * only what is compiled before the command runs, and that is hardly anything.
 */
function compile(file, cache) {
  const kept = cache && join(cache, dirname(file).replaceAll(/[^\w.-]/g, "_"), wordOf());
  const label = Buffer.alloc(LABEL_BYTES, `${file.slice(-32)} ${process.version} ${process.arch}`);
  const cachedData = kept ? keptCode(kept, label) : undefined;
  const script = new Script(
    `(function (module, exports, require, __dirname, importModule) {${readFileSync(file, "utf8")}\n})`,
    { filename: file, cachedData },
  );
  if (kept && (cachedData === undefined || script.cachedDataRejected)) {
    process.on("exit", (code) => {
      if (code !== USAGE) keep(kept, Buffer.concat([label, script.createCachedData()]));
    });
  }
  const run = script.runInThisContext();
  const module = { exports: {} };
  return () => run(module, module.exports, createRequire(file), dirname(file), (specifier) => import(specifier));
}

/** The command of this call, if it is the first word. */
function wordOf() {
  const word = process.argv[2] ?? "";
  return /^[a-z][a-z-]*$/.test(word) ? word : "other";
}

function keptCode(path, label) {
  if (!existsSync(path)) return undefined;
  const kept = readFileSync(path);
  return kept.subarray(0, LABEL_BYTES).equals(label) ? kept.subarray(LABEL_BYTES) : undefined;
}

/** A cache that cannot be written only costs time. */
function keep(path, data) {
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.${process.pid}`, data);
    renameSync(`${path}.${process.pid}`, path);
  } catch {}
}
