/**
 * Compiles `src` to `dist`, which npm packs. Copies the other files that run time needs: descriptors and Lua scripts.
 * Bundles the command line, which would else load hundreds of files for each call, and the page of the console.
 */
import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { extname, join } from "node:path";
import { buildConsole } from "./build-console.ts";
import { bundleCli } from "./bundle-cli.ts";

const root = join(import.meta.dirname, "..");
const source = join(root, "src");
const target = join(root, "dist");

rmSync(target, { recursive: true, force: true });
const tsc = join(root, "node_modules", ".bin", "tsc");
// Messages go to stderr: `npm pack --json` prints JSON on stdout.
const { status } = spawnSync(tsc, ["-p", "tsconfig.build.json"], { cwd: root, stdio: ["ignore", 2, 2] });
if (status !== 0) process.exit(status ?? 1);
cpSync(source, target, { recursive: true, filter: (path) => ![".ts", ".md"].includes(extname(path)) });
await bundleCli(join(target, "bundle"));
await buildConsole(join(target, "console"));
