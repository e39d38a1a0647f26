import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** The YAML library. It has many files, so a process loads it only once it needs it. */
export function yaml(): typeof import("yaml") {
  return require("yaml");
}
