/**
 * Installs the packages that only developers need: those that check, test and generate code. `npm ci` leaves them out
 * (`omit=dev` in `.npmrc`), because they are larger than all that the service needs. Each npm script that needs them
 * runs this first. Several may do so at once.
 */
import { spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { DirectoryHeldError, lockDirectory } from "../src/adapters/store/db/directory-lock.ts";

type Locked = { readonly version?: string; readonly optional?: boolean; readonly devOptional?: boolean };
/** Packages by their path, such as `node_modules/yaml`, as a lock file of npm has them. */
export type LockedPackages = Readonly<Record<string, Locked>>;

const root = join(import.meta.dirname, "..");
const modules = join(root, "node_modules");

/** How long a run waits before it looks again whether another one has installed the packages. */
const LOOK_AGAIN_MS = 200;
/** An install takes less than a minute; a slow network gets the time of a long one. */
const INSTALL_MS_MAX = 900_000;

/** The packages that the lock file names and that are not installed at its version. Optional ones may be absent. */
export function lackingPackages(locked: LockedPackages, installed: LockedPackages): readonly string[] {
  return Object.entries(locked).flatMap(([path, { version, optional, devOptional }]) => {
    const isNeeded = path !== "" && optional !== true && devOptional !== true;
    return isNeeded && installed[path]?.version !== version ? [path] : [];
  });
}

/** Installs what this clone lacks, and says so on stderr. Ends the process if that fails. */
export async function bringDeveloperPackages(): Promise<void> {
  if (lacking().length === 0) return;
  if (lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink() === true) {
    const clone = dirname(realpathSync(modules));
    fail(`${modules} is a link to a folder that lacks some: run "npm ci --include=dev" in ${clone}`);
  }
  const release = await lockInstall();
  try {
    // Another run may have installed them while this one waited.
    const missing = lacking();
    if (missing.length > 0) install(missing);
  } finally {
    release();
  }
}

function lacking(): readonly string[] {
  return lackingPackages(packagesOf(join(root, "package-lock.json")), packagesOf(join(modules, ".package-lock.json")));
}

function packagesOf(lockFile: string): LockedPackages {
  try {
    return (JSON.parse(readFileSync(lockFile, "utf8")) as { readonly packages: LockedPackages }).packages;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw error;
  }
}

/** Keeps other runs from installing. Returns the function that lets them. A run that is killed lets them too. */
async function lockInstall(): Promise<() => void> {
  const folder = join(modules, ".gangway");
  for (let waitedMs = 0; ; waitedMs += LOOK_AGAIN_MS) {
    mkdirSync(folder, { recursive: true });
    try {
      return lockDirectory(join(folder, "developer-packages")).release;
    } catch (error) {
      if (!(error instanceof DirectoryHeldError) || waitedMs > INSTALL_MS_MAX) throw error;
      if (waitedMs === 0) say(`process ${error.pid} installs the packages that only developers need; waiting for it`);
      await wait(LOOK_AGAIN_MS);
    }
  }
}

function install(missing: readonly string[]): void {
  say(`installing the packages that only developers need, once: ${missing.length} packages, about half a minute`);
  const args = ["install", "--include=dev", "--no-save", "--no-audit", "--no-fund", "--prefer-offline"];
  const [command, ...before] = npmCommand();
  // What npm prints goes to stderr: the output of the script that needs the packages may be read by a program.
  const { status, error } = spawnSync(command, [...before, ...args], {
    cwd: root,
    stdio: ["ignore", 2, 2],
    timeout: INSTALL_MS_MAX,
  });
  if (error !== undefined || status !== 0 || lacking().length > 0) {
    fail(`npm has not installed them (${error?.message ?? `it ended with ${status}`}): run "npm ci --include=dev"`);
  }
}

/** The npm that runs this script, under this Node: an older one warns of packages that it could not run. */
function npmCommand(): readonly [string, ...string[]] {
  const npm = process.env["npm_execpath"];
  return npm !== undefined && basename(npm) === "npm-cli.js" ? [process.execPath, npm] : ["npm"];
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

function fail(text: string): never {
  say(`error: the packages that only developers need: ${text}`);
  process.exit(1);
}

if (import.meta.main) await bringDeveloperPackages();
