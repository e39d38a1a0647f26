/** The rules for projected volumes. Source: `validateProjectionSources`. */
import { arrayAt, isJsonObject, type JsonObject, numberAt, objectAt, stringAt } from "../../../../runtime/json.ts";
import { inside, type PodPlace } from "../place.ts";
import { membersOf } from "../pod-types.ts";
import { FILE_MODE, type ObjectRule, required, type TypeRules } from "../rule.ts";
import { isAbsent, isEmpty, setAmong } from "../set.ts";
import { SYNTAX } from "../syntax.ts";

/** Kubernetes 1.36 drops these sources unless a feature is enabled that is not by default. */
const DROPPED = ["clusterTrustBundle", "podCertificate"];
const SOURCES = [...membersOf("VolumeProjection").keys()].filter((name) => !DROPPED.includes(name));

const ONE_SOURCE: ObjectRule = {
  says: `must have at most one of ${SOURCES.join(", ")}`,
  judge: (source, place, { findings }) => {
    if (setAmong(source, SOURCES).length < 2) return;
    const detail = "may not specify more than 1 volume type per source";
    findings.add({ kind: "forbidden", place, detail });
  },
};

const PATHS: ObjectRule = {
  says: "paths of files must be unique in a projected volume",
  judge: (volume, place, { findings }) => {
    const seen = new Set<string>();
    for (const [index, source] of arrayAt(volume, "sources").entries()) {
      const at = inside(inside(place, "sources"), index);
      for (const { path, place: where } of isJsonObject(source) ? filesOf(source, at) : []) {
        if (path !== "" && seen.has(path)) {
          const allowed = "must be unique: another file of the volume has this path";
          findings.add({
            kind: "invalid",
            place: where,
            field: place,
            value: path,
            detail: "conflicting duplicate paths",
            allowed,
          });
        }
        seen.add(path);
      }
    }
  },
};

function filesOf(source: JsonObject, at: PodPlace): readonly { readonly path: string; readonly place: PodPlace }[] {
  return ["secret", "configMap", "downwardAPI"].flatMap((name) => {
    const items = inside(inside(at, name), "items");
    return arrayAt(objectAt(source, name), "items").map((item, index) => ({
      path: stringAt(item, "path") ?? "",
      place: inside(inside(items, index), "path"),
    }));
  });
}

const EXPIRATION_MIN = 600;
const EXPIRATION_MAX = 2 ** 32;

const TOKEN: ObjectRule = {
  says: "expirationSeconds must be from 600 to 4294967296; path must be a relative path",
  judge: (token, place, { findings }) => {
    const seconds = token["expirationSeconds"];
    const at = inside(place, "expirationSeconds");
    const invalid = (detail: string) => findings.add({ kind: "invalid", place: at, value: seconds, detail });
    if (!isAbsent(seconds) && (numberAt(token, "expirationSeconds") ?? 0) < EXPIRATION_MIN) {
      invalid("may not specify a duration less than 10 minutes");
    }
    if ((numberAt(token, "expirationSeconds") ?? 0) > EXPIRATION_MAX) {
      invalid("may not specify a duration larger than 2^32 seconds");
    }
    const path = stringAt(token, "path") ?? "";
    const where = { place: inside(place, "path"), field: inside(place?.up?.up?.up ?? null, "path") };
    if (isEmpty(path)) findings.add({ kind: "required", ...where, detail: "" });
    for (const detail of path === "" ? [] : SYNTAX.filePath.problems(path)) {
      findings.add({ kind: "invalid", ...where, value: path, detail, allowed: SYNTAX.filePath.allowed });
    }
  },
};

const NAMED = { members: { name: required() } };

export const PROJECTION_RULES: TypeRules = {
  ProjectedVolumeSource: { members: { defaultMode: FILE_MODE }, whole: [PATHS] },
  VolumeProjection: { whole: [ONE_SOURCE] },
  SecretProjection: NAMED,
  ConfigMapProjection: NAMED,
  ServiceAccountTokenProjection: { whole: [TOKEN] },
};
