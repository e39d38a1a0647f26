import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../", import.meta.url));

/** Lays out a folder as `npm install` of the packed file does, with the packages of this clone. */
export function installPacked(): {
  readonly directory: string;
  readonly installed: string;
  readonly remove: () => void;
} {
  const directory = mkdtempSync(join(tmpdir(), "gangway-pack-"));
  const source = copyOfTree(join(directory, "source"));
  const modules = join(directory, "node_modules");
  const installed = join(modules, "gangway");
  const path = `${dirname(process.execPath)}:${process.env["PATH"]}`;
  const pack = spawnSync("npm", ["pack", "--silent", "--pack-destination", directory], {
    cwd: source,
    encoding: "utf8",
    env: { ...process.env, PATH: path },
  });
  assert.equal(pack.status, 0, pack.stderr);
  mkdirSync(installed, { recursive: true });
  const file = join(directory, pack.stdout.trim());
  assert.equal(spawnSync("tar", ["xzf", file, "-C", installed, "--strip-components=1"]).status, 0);
  linkPackages(modules);
  return { directory, installed, remove: () => rmSync(directory, { recursive: true }) };
}

/** Fills a folder like node_modules with the packages of this clone, without their commands. */
export function linkPackages(modules: string): void {
  mkdirSync(modules, { recursive: true });
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (!name.startsWith(".")) symlinkSync(join(root, "node_modules", name), join(modules, name));
  }
}

/** Copies what a clone has, without node_modules. */
export function copyClone(target: string): void {
  for (const name of readdirSync(root)) {
    if (!LEFT_OUT.includes(name)) cpSync(join(root, name), join(target, name), { recursive: true });
  }
}

const LEFT_OUT = ["node_modules", ".git", "dist", ".gangway", "test"];

/** Packing compiles into the tree that it packs. Tests run in parallel, so each packs its own tree. */
function copyOfTree(target: string): string {
  copyClone(target);
  symlinkSync(join(root, "node_modules"), join(target, "node_modules"));
  return target;
}
