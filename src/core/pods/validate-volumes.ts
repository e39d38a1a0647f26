import { arrayAt, isJsonObject, type Json, type JsonObject, stringAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/sent.ts";

/**
 * Errors in the volumes of a whole pod spec and in its volume mounts: duplicates, and mounts without a volume. Paths
 * start at the template.
 */
export function checkVolumes(podSpec: JsonObject): readonly FieldError[] {
  const volumes = arrayAt(podSpec, "volumes");
  const names = new Set(volumes.map((volume) => stringAt(volume, "name")));
  const mounts = (["containers", "initContainers"] as const).flatMap((list) =>
    arrayAt(podSpec, list)
      .filter(isJsonObject)
      .flatMap((container, index) => {
        const path = `spec.${list}[${index}].volumeMounts`;
        const own = arrayAt(container, "volumeMounts");
        return [...duplicates(own, "mountPath", path), ...withoutVolume(own, names, path)];
      }),
  );
  return [...duplicates(volumes, "name", "spec.volumes"), ...mounts];
}

function duplicates(list: readonly Json[], key: string, path: string): readonly FieldError[] {
  const seen = new Set<string>();
  return list.flatMap((one, index) => {
    const name = stringAt(one, key) ?? "";
    const again = name !== "" && seen.has(name);
    seen.add(name);
    return again
      ? [{ path: `${path}[${index}].${key}`, message: `must be unique: another item of the list has ${key} ${name}` }]
      : [];
  });
}

function withoutVolume(
  mounts: readonly Json[],
  volumes: ReadonlySet<string | undefined>,
  path: string,
): readonly FieldError[] {
  return mounts.flatMap((mount, index) => {
    const name = stringAt(mount, "name") ?? "";
    return volumes.has(name)
      ? []
      : [{ path: `${path}[${index}].name`, message: `is "${name}": must be the name of a volume of the pod` }];
  });
}
