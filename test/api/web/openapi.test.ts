/** The description of the API in OpenAPI. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { openApi, streamLine } from "../../../proto/openapi.ts";
import { SERVICES } from "../../../src/api/services.ts";
import { startWebFixture } from "./http.ts";

type Member = Readonly<Record<string, unknown>>;
type Document = {
  readonly paths: Readonly<Record<string, { readonly post: { readonly description?: string } }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly properties: Record<string, Member> } & Member>>;
  };
};

const text = readFileSync(new URL("../../../src/gen/openapi.json", import.meta.url), "utf8");
const document = JSON.parse(text) as Document;
const { schemas } = document.components;

test("it is what npm run generate makes of the proto files", () => {
  assert.deepEqual(document, JSON.parse(JSON.stringify(openApi())));
});

test("it is valid, and has each RPC with its comment", async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(text));
  assert.ok(valid, JSON.stringify(errors));
  const paths = SERVICES.flatMap((service) => service.methods.map(({ name }) => `/${service.typeName}/${name}`));
  assert.deepEqual(Object.keys(document.paths), paths);
  for (const path of paths) assert.ok((document.paths[path]?.post.description ?? "").length > 20, path);
});

function isListed(list: unknown, name: string): boolean {
  return Array.isArray(list) && list.includes(name);
}

/** A message, and what its schema says. */
const says: Readonly<Record<string, (of: typeof schemas) => unknown>> = {
  "a length of a text": (of) => of["gangway.v1.GetJobRequest"]?.properties["name"]?.["maxLength"] === 253,
  "a range of a number": (of) => of["gangway.v1.ListJobsRequest"]?.properties["pageSize"]?.["maximum"] === 1000,
  "a required field": (of) => isListed(of["gangway.v1.CreateJobRequest"]?.["required"], "job"),
  "the most items of a list": (of) =>
    of["gangway.v1.BatchCreateJobsRequest"]?.properties["requests"]?.["maxItems"] === 1000,
  "the most entries of a map": (of) => Number(of["gangway.v1.Metadata"]?.properties["labels"]?.["maxProperties"]) > 0,
  "the comment of a field": (of) => of["gangway.v1.GetJobRequest"]?.properties["uid"]?.["description"] !== undefined,
  "the names of an enum": (of) => isListed(of["gangway.v1.JobPhase"]?.["enum"], "JOB_PHASE_RUNNING"),
};

suite("it says", () => {
  for (const [name, isSaid] of Object.entries(says)) test(name, () => assert.ok(isSaid(schemas)));
});

test("each stream has a line for the shell, which calls it", async (t) => {
  const { address } = await startWebFixture(t);
  const streams = SERVICES.flatMap((service) =>
    service.methods
      .filter(({ methodKind }) => methodKind === "server_streaming")
      .map(({ name }) => `/${service.typeName}/${name}`),
  );
  assert.ok(streams.length >= 3);
  for (const path of streams) {
    const line = streamLine(path);
    assert.ok(document.paths[path]?.post.description?.includes(line), path);
    const said = await outputOf(line.replace("127.0.0.1:7480", address), /BOOKMARK|"code":"[a-z_]+"/);
    assert.match(said, /BOOKMARK|"code":"(not_found|invalid_argument)"/, path);
  }
});

/** Runs a line of the shell until it has said something, or ends. */
async function outputOf(line: string, until: RegExp): Promise<string> {
  const shell = spawn("bash", ["-c", line], { detached: true, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  shell.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
    if (until.test(output)) process.kill(-(shell.pid ?? 0), "SIGKILL");
  });
  await once(shell, "close");
  return output;
}
