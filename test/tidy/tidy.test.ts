import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { brokenRules } from "./rules.ts";

const src = new URL("../../src/", import.meta.url);

test("every file of src keeps the layout's rules", () => {
  const files = readdirSync(src, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(src.pathname.length).replace(/^\//, ""))
    .filter((path) => !path.startsWith("gen/"));
  assert.ok(files.length > 20, "src was found");
  const broken = files.flatMap((path) => brokenRules({ path, text: readFileSync(new URL(path, src), "utf8") }));
  assert.deepEqual(broken, []);
});

const violations: Record<string, { path: string; text: string }> = {
  "core may not use a package": { path: "core/job/x.ts", text: 'import { x } from "pino";' },
  "core may not import a stage": { path: "core/job/x.ts", text: 'import { x } from "../../worker/step.ts";' },
  "core's rooms look one way": { path: "core/job/x.ts", text: 'import type { x } from "../plan/plan.ts";' },
  "core may not read the clock": { path: "core/job/x.ts", text: "export const now = () => Date.now();" },
  "a stage may not import another": { path: "planner/x.ts", text: 'import { x } from "../worker/step.ts";' },
  "a stage may not import an adapter": { path: "api/x.ts", text: 'import type { x } from "../adapters/store/db.ts";' },
  "an adapter may not import another": {
    path: "adapters/store/x.ts",
    text: 'import { x } from "../quota/in-process.ts";',
  },
  "an adapter may not import a stage": {
    path: "adapters/store/x.ts",
    text: 'import type { x } from "../../worker/ports.ts";',
  },
  "a dynamic import counts too": { path: "worker/x.ts", text: 'await import("../planner/planner.ts");' },
  "a re-export counts too": { path: "worker/x.ts", text: 'export { x } from "../planner/planner.ts";' },
  "proto types stop in api": { path: "intake/x.ts", text: 'import type { Job } from "../gen/gangway/v1/job_pb.ts";' },
  "rows stop in the store": { path: "planner/x.ts", text: 'import pg from "pg";' },
  "Kubernetes types stop in the cluster adapter": {
    path: "worker/x.ts",
    text: 'import type { V1Pod } from "@kubernetes/client-node";',
  },
  "nobody imports main": { path: "cli/x.ts", text: 'import { x } from "../main.ts";' },
  "only config reads the environment": { path: "cli/x.ts", text: "export const x = process.env;" },
  "no default exports": { path: "cli/x.ts", text: "export default 1;" },
  "file names are kebab-case": { path: "cli/someFile.ts", text: "" },
  "files end at 400 lines": { path: "cli/x.ts", text: "\n".repeat(401) },
};
for (const [name, file] of Object.entries(violations)) {
  test(`the tidy check notices: ${name}`, () => assert.equal(brokenRules(file).length, 1));
}
