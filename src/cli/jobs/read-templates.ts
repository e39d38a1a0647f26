import { isJsonObject, type JsonObject } from "../../runtime/json.ts";
import { readDocuments } from "../manifest/documents.ts";
import { readSources, type SourceIo } from "../manifest/sources.ts";
import { usageFailure } from "../shell/exit.ts";

const TYPE_AND_FILE = /^([^=]+)=(.+)$/;
/** A template has at most 1 MiB. */
const TEMPLATE_BYTES_MAX = 1024 * 1024;

/** By replica type: the members of a pod template that a file has. */
export type TemplateFiles = readonly (readonly [type: string, template: JsonObject])[];

/** Reads `TYPE=FILE` as `--template` gives it. Each file is one document of YAML, and `-` is stdin. */
export async function readTemplates(options: readonly string[], io: SourceIo): Promise<TemplateFiles> {
  const files: (readonly [string, JsonObject])[] = [];
  for (const option of options) {
    const [, type, path] = TYPE_AND_FILE.exec(option) ?? [];
    if (type === undefined || path === undefined) {
      throw usageFailure(`--template must be TYPE=FILE, such as Worker=nodes.yaml, not ${option}`);
    }
    files.push([type, await readTemplate(path, io)]);
  }
  return files;
}

async function readTemplate(path: string, io: SourceIo): Promise<JsonObject> {
  const sources = await readSources([path], io, TEMPLATE_BYTES_MAX);
  const [step, ...more] = sources.flatMap((source) => [...readDocuments(source)]).filter((one) => one !== null);
  if (step !== undefined && "error" in step) throw usageFailure(step.error);
  if (step === undefined || more.length > 0 || !isJsonObject(step.value)) {
    throw usageFailure(`${path} must be one document with metadata and spec of a pod template`);
  }
  return step.value;
}
