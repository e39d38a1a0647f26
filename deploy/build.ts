/** Compiles `src` to `dist`, which is what npm packs, and puts beside it what is read at run time: descriptors, scripts. */
import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { extname, join } from "node:path";

const root = join(import.meta.dirname, "..");
const source = join(root, "src");
const target = join(root, "dist");

rmSync(target, { recursive: true, force: true });
const tsc = join(root, "node_modules", ".bin", "tsc");
// Its words go to stderr: `npm pack --json` keeps stdout for its own.
const { status } = spawnSync(tsc, ["-p", "tsconfig.build.json"], { cwd: root, stdio: ["ignore", 2, 2] });
if (status !== 0) process.exit(status ?? 1);
cpSync(source, target, { recursive: true, filter: (path) => ![".ts", ".md"].includes(extname(path)) });
