import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";

/** A time of the API. Null: it has none. */
export function toTimestamp(timeMs: number | null): Timestamp | undefined {
  return timeMs === null ? undefined : timestampFromMs(timeMs);
}
