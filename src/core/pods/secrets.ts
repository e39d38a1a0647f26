import type { JsonObject } from "../../runtime/json.ts";
import type { SecretKey } from "./pod-annotations.ts";
import { mapContainers, withNamed } from "./with-named.ts";

const VOLUME = "gangway-secrets";
const MOUNT_PATH = "/etc/gangway/secrets";
const ENV_PREFIX = "GANGWAY_SECRET_";

/**
 * Gives all containers these keys of secrets: as variables `GANGWAY_SECRET_<SECRET>_<KEY>`, or as files
 * `/etc/gangway/secrets/<secret>/<key>`. The pod spec only refers to secrets. A missing secret keeps the pod from
 * starting.
 */
export function withSecrets(podSpec: JsonObject, keys: readonly SecretKey[]): JsonObject {
  if (keys.length === 0) return podSpec;
  const files = keys.filter(({ asFile }) => asFile);
  const env = keys.filter(({ asFile }) => !asFile).map(variableOf);
  const volumes = files.length === 0 ? [] : [{ name: VOLUME, projected: { sources: sourcesOf(files) } }];
  const mounts = volumes.map(({ name }) => ({ name, mountPath: MOUNT_PATH, readOnly: true }));
  const mounted = mapContainers(podSpec, (container) => ({
    ...container,
    ...withNamed(container, "env", env),
    ...withNamed(container, "volumeMounts", mounts, "mountPath"),
  }));
  return { ...mounted, ...withNamed(podSpec, "volumes", volumes) };
}

/** The bytes of JSON that these keys add to each container. */
export function secretsBytes(keys: readonly SecretKey[]): number {
  const variables = keys.filter(({ asFile }) => !asFile);
  return variables.reduce((sum, key) => sum + JSON.stringify(variableOf(key)).length + 1, 0);
}

function variableOf({ secret, key }: SecretKey): JsonObject {
  return {
    name: ENV_PREFIX + `${secret}_${key}`.toUpperCase().replace(/[^A-Z0-9_]/g, "_"),
    valueFrom: { secretKeyRef: { name: secret, key } },
  };
}

function sourcesOf(files: readonly SecretKey[]): readonly JsonObject[] {
  const bySecret = Map.groupBy(files, ({ secret }) => secret);
  return [...bySecret].map(([name, keys]) => ({
    secret: { name, items: [...new Set(keys.map(({ key }) => key))].map((key) => ({ key, path: `${name}/${key}` })) },
  }));
}
