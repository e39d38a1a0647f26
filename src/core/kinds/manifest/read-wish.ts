import type { Json } from "../../../runtime/json.ts";
import { keptWish, type TopologySlice, type TopologyWish } from "../../job/placement/topology-wish.ts";
import type { SentReader } from "./sent-reader.ts";

/** Reads the wish for topology of a job or of a replica type. An empty one is none. */
export function readWish(reader: SentReader, value: Json | undefined, path: string): TopologyWish | undefined {
  const wish = reader.object(value, path);
  if (wish === undefined) return undefined;
  reader.onlyKnown(wish, path, ["required", "preferred", "slices"]);
  return keptWish({
    required: reader.text(wish["required"], `${path}.required`),
    preferred: reader.text(wish["preferred"], `${path}.preferred`),
    slices: readSlices(reader, wish["slices"], `${path}.slices`),
  });
}

function readSlices(reader: SentReader, value: Json | undefined, path: string): readonly TopologySlice[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) return reader.fail(path, "must be a list of levels and sizes") ?? [];
  return value.map((one: Json, at) => {
    const slice = reader.object(one, `${path}[${at}]`) ?? {};
    reader.onlyKnown(slice, `${path}[${at}]`, ["level", "size"]);
    return {
      level: reader.text(slice["level"], `${path}[${at}].level`) ?? "",
      size: reader.wholeNumber(slice["size"], `${path}[${at}].size`, { least: 1 }) ?? 0,
    };
  });
}
