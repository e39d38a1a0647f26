import { isSet, type PodPart } from "../pod-parts.ts";
import type { PodNeed } from "./control.ts";

/** The types of volumes that a level does not take. A volume without any type is an emptyDir. */
export function volumeTypes(volumes: readonly PodPart[], isRefused: (type: string) => boolean): readonly PodNeed[] {
  return volumes.flatMap(({ path, value }) =>
    Object.keys(value)
      .filter((type) => type !== "name" && isSet(value[type]) && isRefused(type))
      .map((type) => ({
        path: `${path}.${type.slice(0, NAME_SHOWN_MAX)}`,
        what: `is a volume of type ${type.slice(0, NAME_SHOWN_MAX)}`,
        needs: { kind: "volume", value: type },
      })),
  );
}

const NAME_SHOWN_MAX = 80;
