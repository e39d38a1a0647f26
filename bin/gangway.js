#!/usr/bin/env node
// Starts the command line under a Node that can run it. Plain JavaScript without dependencies: any Node must run it.
const { existsSync, realpathSync } = require("node:fs");
const { enableCompileCache, registerHooks } = require("node:module");
const { constants, homedir } = require("node:os");
const { dirname, join } = require("node:path");
const { pathToFileURL } = require("node:url");

const NEEDED = 24;
/** Marks the second run: if the Node of node_modules is too old as well, it must not start a third run. */
const SECOND_RUN = "GANGWAY_SECOND_RUN";
/** The value of SECOND_RUN in a child of the first run. The child gets a pipe as its descriptor 3. */
const CHILD = "child";
/** The commands that run the service, which is a long process. */
const SERVICES = ["up", "serve"];
/** The commands that use parts of the service, which the bundle does not have. */
const NOT_BUNDLED = [...SERVICES, "migrate"];
const HELP = ["-h", "--help"];
const root = dirname(__dirname);
/** A clone runs its sources. An installed package has only compiled files: Node strips no types under node_modules. */
const main = [join(root, "src", "main.ts"), join(root, "dist", "main.js")].find((file) => existsSync(file));

if (Number.parseInt(process.versions.node, 10) >= NEEDED) {
  if (process.env[SECOND_RUN] === CHILD) endWithParent();
  delete process.env[SECOND_RUN];
  void start();
} else {
  const node = process.env[SECOND_RUN] === undefined ? findNode(root) : null;
  if (node === null) refuse();
  else runAgain(node);
}

/** Runs the command line from the bundle, else module by module. */
async function start() {
  // The first start compiles what it loads, which takes seconds on a busy machine. Who starts it sees it begin.
  const [, , word, ...flags] = process.argv;
  if (word === "up" && !flags.some((flag) => HELP.includes(flag))) process.stderr.write("loading gangway …\n");
  const cache = process.env.XDG_CACHE_HOME || (homedir() && join(homedir(), ".cache"));
  const compiled = process.env.NODE_COMPILE_CACHE || (cache && join(cache, "gangway", "compiled"));
  if (!process.argv.some((word) => NOT_BUNDLED.includes(word))) {
    const run = await require("./bundle.js").loadBundle(root, compiled);
    if (run !== null) return run();
  }
  // Compiling takes longer than most commands. Does nothing if it cannot keep the compiled code.
  if (compiled) enableCompileCache(compiled);
  resolveByName();
  return import(pathToFileURL(main).href);
}

/** The Node of the optional dependencies, in the package's folder or one above it; null if there is none. */
function findNode(from) {
  for (let folder = from; ; folder = dirname(folder)) {
    const node = join(folder, "node_modules", ".bin", "node");
    if (existsSync(node)) return node;
    if (dirname(folder) === folder) return null;
  }
}

function refuse() {
  process.stderr.write(
    `gangway needs Node ${NEEDED} or newer, but this is ${process.versions.node} and node_modules/.bin has no newer ` +
      `one: run "npm ci" in ${root} (on Linux), or install Node ${NEEDED}.\n`,
  );
  process.exitCode = 2;
}

/** Replaces this process where Node can do that, so that there is one process to signal and to kill. */
function runAgain(node) {
  const args = [...process.execArgv, __filename, ...process.argv.slice(2)];
  if (typeof process.execve === "function" && process.platform !== "win32") {
    // Node warns that execve is experimental.
    process.removeAllListeners("warning");
    process.execve(realpathSync(node), [node, ...args], { ...process.env, [SECOND_RUN]: "replaced" });
  }
  const { spawn } = require("node:child_process");
  const child = spawn(node, args, {
    stdio: ["inherit", "inherit", "inherit", "pipe"],
    env: { ...process.env, [SECOND_RUN]: CHILD },
  });
  forwardSignals(child);
  child.on("error", (error) => {
    process.stderr.write(`gangway: ${node} does not start: ${error.message}\n`);
    process.exit(2);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    // Ends by the child's signal, so that a waiting shell sees it. If the signal does not end this process, its number
    // does.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 100);
  });
}

/**
 * Finds the file of a relative import by its name alone. Node also looks for links, and for the package of every file,
 * which takes longer than compiling them. An importer named .js or .ts that may import is in a package of modules, so
 * its neighbours are modules too.
 */
function resolveByName() {
  const named = /\.[jt]s$/;
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL = "", conditions, importAttributes } = context;
      const isRelative = specifier.startsWith(".") && named.test(specifier) && named.test(parentURL);
      if (!isRelative || !conditions.includes("import") || "type" in importAttributes) return next(specifier, context);
      const { href } = new URL(specifier, parentURL);
      return { url: href, format: href.endsWith(".ts") ? "module-typescript" : "module", shortCircuit: true };
    },
  });
}

/**
 * Ends this process when the first run is gone, also if that was killed: the pipe of the first run closes then. No
 * clean-up could hang: it kills this process. The service may be busy for seconds, so that a thread of its own listens.
 * Starting one takes longer than most commands, which are never busy for long.
 */
function endWithParent() {
  const listen = (require, pid) => {
    const { Socket } = require("node:net");
    const pipe = new Socket({ fd: 3, readable: true, writable: false });
    const end = () => process.kill(pid, "SIGKILL");
    return pipe.on("end", end).on("error", end).resume();
  };
  if (!process.argv.some((word) => SERVICES.includes(word))) {
    listen(require, process.pid).unref();
    return;
  }
  const { Worker } = require("node:worker_threads");
  new Worker(`(${listen})(require, ${process.pid})`, { eval: true, env: {}, execArgv: [] }).unref();
}

/** A terminal sends its signals to the child too, which must not get them twice. */
function forwardSignals(child) {
  const fromTerminal = process.stdin.isTTY === true ? ["SIGINT", "SIGQUIT"] : [];
  for (const signal of ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR2"]) {
    process.on(signal, () => {
      if (!fromTerminal.includes(signal)) child.kill(signal);
    });
  }
}
