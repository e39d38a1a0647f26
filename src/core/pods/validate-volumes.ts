import { arrayAt, isJsonObject, type Json, type JsonObject, stringAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/sent.ts";

/** What is wrong with the volumes of a whole pod spec and where they are mounted: things twice, mounts of nothing. Paths are from the template. */
export function checkVolumes(podSpec: JsonObject): readonly FieldError[] {
  const volumes = arrayAt(podSpec, "volumes");
  const names = new Set(volumes.map((volume) => stringAt(volume, "name")));
  const mounts = (["containers", "initContainers"] as const).flatMap((list) =>
    arrayAt(podSpec, list)
      .filter(isJsonObject)
      .flatMap((container, index) => {
        const path = `spec.${list}[${index}].volumeMounts`;
        const own = arrayAt(container, "volumeMounts");
        return [...twice(own, "mountPath", path), ...ofNothing(own, names, path)];
      }),
  );
  return [...twice(volumes, "name", "spec.volumes"), ...mounts];
}

function twice(list: readonly Json[], key: string, path: string): readonly FieldError[] {
  const seen = new Set<string>();
  return list.flatMap((one, index) => {
    const name = stringAt(one, key) ?? "";
    const again = name !== "" && seen.has(name);
    seen.add(name);
    return again ? [{ path: `${path}[${index}].${key}`, message: `another one is ${name}` }] : [];
  });
}

function ofNothing(
  mounts: readonly Json[],
  volumes: ReadonlySet<string | undefined>,
  path: string,
): readonly FieldError[] {
  return mounts.flatMap((mount, index) => {
    const name = stringAt(mount, "name") ?? "";
    return volumes.has(name) ? [] : [{ path: `${path}[${index}].name`, message: `there is no volume ${name}` }];
  });
}
