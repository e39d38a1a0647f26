/** Connects the keys of credentials with the file that gives them, and tells which of them are missing. */
import type { RegisteredCluster } from "../adapters/cluster/registry.ts";
import type { Config } from "../config/config.ts";
import { type CredentialKeys, DEFAULT_KEY } from "../core/admin/credential-keys.ts";
import { canonicalJson, stringAt } from "../runtime/json.ts";
import { type Base, runLoops } from "./base.ts";
import { followSettings } from "./follow-settings.ts";

export type FollowedKeys = {
  readonly now: () => CredentialKeys;
  /** Logs the keys that these clusters need and this process lacks, whenever they have changed. */
  readonly reportMissing: (clusters: readonly RegisteredCluster[]) => void;
};

/** `onRead`: clusters whose key was missing can be tried again. */
export function followCredentialKeys(
  { clock, telemetry, parts }: Pick<Base, "clock" | "telemetry" | "parts">,
  { credentialsKeys, credentialsKeysFile: file }: Pick<Config, "credentialsKeys" | "credentialsKeysFile">,
  onRead: () => void,
): FollowedKeys {
  const { now, run } = followSettings(file, credentialsKeys, {
    clock,
    onRead: () => {
      const { current, keys } = now();
      telemetry.credentialKeysRead({ file: file?.path ?? "", current, keys: [...keys.keys()] });
      onRead();
    },
    onError: (error) => telemetry.loopFailed({ loop: "keys of credentials", error }),
  });
  runLoops(parts, run);
  let reported = canonicalJson([]);
  const reportMissing = (clusters: readonly RegisteredCluster[]) => {
    const missing = missingKeys(clusters, now());
    if (canonicalJson(missing) === reported) return;
    reported = canonicalJson(missing);
    for (const one of missing) telemetry.credentialKeyMissing(one);
  };
  return { now, reportMissing };
}

function missingKeys(clusters: readonly RegisteredCluster[], { keys }: CredentialKeys) {
  const sealed = clusters.filter(({ credentials }) => stringAt(credentials, "kind") === "sealed");
  const byKey = Map.groupBy(sealed, ({ credentials }) => stringAt(credentials, "key") ?? DEFAULT_KEY);
  const missing = [...byKey].filter(([key]) => !keys.has(key));
  return missing.map(([key, of]) => ({ key, clusters: of.map(({ name }) => name) }));
}
