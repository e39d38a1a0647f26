"""Reads jobs from manifests as the command line does: those of Kubeflow as they are, and those of gangway.dev/v1."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

from google.protobuf import json_format

from . import v1
from ._flow import LOG
from .errors import ManifestError

OLDER_VERSION = "kubeflow.org/v1alpha1"
OWN_VERSION = "gangway.dev/v1"
OWN_PREFIX = "gangway.dev/"
PROBLEMS_MAX = 100
_EXPECT = "gangway.dev/expect"
_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_RESTART_POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
_OWN_SPEC = ("kind", "replicaSpecs", "runPolicy", "kindSpec", "inputs", "priority", "priorityClassName", "placement")
# Members of a run policy that older manifests have in the spec itself.
_LIFTED = ("cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit", "schedulingPolicy")
_MANAGERS = ("kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue")
_KUEUE = (
    ("labels", "kueue.x-k8s.io/max-exec-time-seconds", "max-runtime"),
    ("annotations", "kueue.x-k8s.io/job-min-parallelism", "min-available"),
)
# Of two settings of a pair, one that is given takes the place of the other.
_RIVALS = (
    ("priority", "priority-class"),
    ("priority-class", "priority"),
    ("required-topology", "preferred-topology"),
    ("preferred-topology", "required-topology"),
)
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_INT32_MAX = 2**31 - 1

_RULES: Any = json.loads(Path(__file__).with_name("manifest.json").read_text(encoding="utf-8"))
_SETTINGS: dict[str, Any] = {setting["name"]: setting for setting in _RULES["settings"]}
_BY_FIELD: dict[str, Any] = {setting["field"]: setting for setting in _RULES["settings"]}
_ENUMS = {
    "restartPolicy": "RESTART_POLICY",
    "cleanPodPolicy": "CLEAN_POD_POLICY",
    "cleanPodPolicyAtLimit": "CLEAN_POD_POLICY",
    "restartScope": "RESTART_SCOPE",
    "partial": "PARTIAL_POLICY",
}


@dataclass(frozen=True)
class KindForm:
    """How manifests of a kind look. ``ListKinds`` returns the kinds."""

    name: str
    api_version: str
    replica_specs_field: str
    without_pods: bool
    is_default: bool
    has_own_form: bool


def kind_forms(kinds: Sequence[v1.Kind]) -> list[KindForm]:
    return [
        KindForm(
            one.name, one.api_version, one.replica_specs_field, one.without_pods, one.is_default, one.has_own_form
        )
        for one in kinds
    ]


def request_of(
    document: Any, kinds: Sequence[KindForm], *, namespace: str, is_explicit: bool = False
) -> v1.CreateJobRequest:
    """The request that creates the job of a manifest. Raises ManifestError with everything that is wrong.

    Manifests in a form that the service alone knows, such as ``batch/v1``, are sent as they are.
    """
    version = document.get("apiVersion") if isinstance(document, Mapping) else None
    if version not in _read_by_service(kinds):
        return v1.CreateJobRequest(job=read_manifest(document, kinds, namespace=namespace, is_explicit=is_explicit))
    metadata = document.get("metadata")
    own = metadata.get("namespace") if isinstance(metadata, Mapping) else None
    if is_explicit and own is not None and own != namespace:
        raise ManifestError([f"metadata.namespace: is {own}, but the call names {namespace}"])
    place = own if isinstance(own, str) else namespace
    request = v1.CreateJobRequest()
    try:
        json_format.ParseDict({"job": {"metadata": {"namespace": place}}, "manifest": document}, request)
    except json_format.ParseError as error:
        raise ManifestError([str(error)]) from error
    return request


def _read_by_service(kinds: Sequence[KindForm]) -> set[str]:
    """The versions of manifests that the service takes as they are. An older service takes none."""
    versions = {kind.api_version for kind in kinds if kind.has_own_form}
    return versions | {OLDER_VERSION} if versions else versions


def read_manifest(
    document: Any, kinds: Sequence[KindForm], *, namespace: str, is_explicit: bool = False
) -> v1.Job:
    """The job of a manifest. Raises ManifestError with everything that is wrong.

    ``namespace``: of manifests that name none. ``is_explicit``: a manifest must not name another one.
    """
    reader = _Reader()
    if not isinstance(document, Mapping):
        raise ManifestError(["must be an object with apiVersion, kind, metadata and spec"])
    job = _read(reader, document, kinds)
    if job is not None:
        metadata = job["metadata"]
        if not (metadata.get("name") or metadata.get("generateName")):
            reader.fail("metadata.name", "is required")
        own = metadata.setdefault("namespace", namespace)
        if is_explicit and own != namespace:
            reader.fail("metadata.namespace", f"is {own}, but the call names {namespace}")
    if reader.problems or job is None:
        raise ManifestError(reader.problems)
    for warning in reader.warnings:
        LOG.warning("manifest of job %s: %s", job["metadata"].get("name", ""), warning)
    message = v1.Job()
    try:
        json_format.ParseDict(job, message)
    except json_format.ParseError as error:
        raise ManifestError([str(error)]) from error
    return message


class _Reader:
    """Reads members of untyped JSON, and collects what is wrong."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def fail(self, path: str, why: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(f"{path}: {why}")

    def object(self, value: Any, path: str) -> Mapping[str, Any] | None:
        if value is None or isinstance(value, Mapping):
            return value
        self.fail(path, "must be an object")
        return None

    def text(self, value: Any, path: str) -> str | None:
        if value is None or isinstance(value, str):
            return value
        self.fail(path, "must be text")
        return None

    def flag(self, value: Any, path: str) -> bool | None:
        if value is None or isinstance(value, bool):
            return value
        self.fail(path, "must be true or false")
        return None

    def texts(self, value: Any, path: str) -> list[str] | None:
        if value is None:
            return None
        if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
            return list(value)
        self.fail(path, "must be a list of texts")
        return None

    def number(self, value: Any, path: str, *, wide: bool = False) -> int | None:
        """A whole number of 32 bits. ``wide``: of 53 bits, and also as text."""
        if wide and isinstance(value, str) and re.match(r"^-?[0-9]{1,16}$", value):
            value = int(value)
        limit = 2**53 - 1 if wide else _INT32_MAX
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= limit:
            return value
        self.fail(path, f"must be a whole number of at most {limit}")
        return None

    def map(self, value: Any, path: str, *, lenient: bool = False) -> dict[str, str] | None:
        """A map of texts. ``lenient``: takes numbers too, because authors of YAML forget the quotes of quantities."""
        members = self.object(value, path)
        if members is None:
            return None
        texts = {}
        for key, inner in members.items():
            is_number = isinstance(inner, (int, float)) and not isinstance(inner, bool)
            if isinstance(inner, str) or (lenient and is_number):
                whole = isinstance(inner, float) and inner.is_integer()
                texts[key] = str(int(inner) if whole else inner)
            else:
                self.fail(f'{path}["{key}"]', "must be text")
        return texts

    def word(self, value: Any, path: str, words: Sequence[str]) -> str | None:
        """One of the words, in any case, with or without the prefix of the enum."""
        text = self.text(value, path)
        if not text:
            return None
        plain = text.replace("_", "").lower()
        for prefix in ("", "policy", "scope"):
            for word in words:
                bare = word.replace("_", "").lower()
                if plain == bare or (prefix and plain.endswith(prefix + bare)):
                    return word
        self.fail(path, f"must be one of {', '.join(words)}")
        return None

    def duration(self, value: Any, path: str) -> str | None:
        """A duration such as ``1h30m``, as the JSON of protobuf writes it."""
        if value is None:
            return None
        span = _duration_ms(value) if isinstance(value, str) else None
        if span is None:
            self.fail(path, "must be a duration with its unit, such as 90s, 10m or 1h30m")
            return None
        return f"{span // 1000}.{span % 1000:03d}s"

    def only_known(self, members: Mapping[str, Any], path: str, known: Sequence[str]) -> None:
        for name in members:
            if name not in known:
                self.fail(f"{path}.{name}", f"is not a known field; known are {', '.join(known)}")


def _duration_ms(text: str) -> int | None:
    if not re.match(r"^(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d))+$", text):
        return None
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)", text)
    return round(sum(float(amount) * _UNIT_MS[unit] for amount, unit in parts))


def _sent(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _read(reader: _Reader, document: Mapping[str, Any], kinds: Sequence[KindForm]) -> dict[str, Any] | None:
    """The job as the JSON of the API. None: nothing of it could be read."""
    version = reader.text(document.get("apiVersion"), "apiVersion")
    is_own = version == OWN_VERSION
    named = _kind_of(reader, document, kinds, is_own)
    if named is None:
        return None
    name, kind = named
    if not is_own and version != kind.api_version:
        allowed = f"{kind.api_version} or {OWN_VERSION}"
        reader.fail("apiVersion", f"must be {allowed} for kind {name}, not {version or 'omitted'}")
        return None
    given = reader.object(document.get("metadata"), "metadata") or {}
    metadata = _sent(
        name=reader.text(given.get("name"), "metadata.name"),
        generateName=reader.text(given.get("generateName"), "metadata.generateName"),
        namespace=reader.text(given.get("namespace"), "metadata.namespace"),
        labels=reader.map(given.get("labels"), "metadata.labels"),
        annotations=reader.map(given.get("annotations"), "metadata.annotations"),
    )
    members = reader.object(document.get("spec"), "spec")
    if members is None:
        reader.fail("spec", "is required")
        return None
    spec = _own_spec(reader, name, kind, members) if is_own else _kubeflow_spec(reader, name, kind, members)
    _take_settings(reader, metadata, spec, is_foreign=not is_own)
    return {"metadata": metadata, "spec": spec}


def _kind_of(
    reader: _Reader, document: Mapping[str, Any], kinds: Sequence[KindForm], is_own: bool
) -> tuple[str, KindForm] | None:
    """The kind that a document names. A ``kind: Job`` of gangway.dev/v1 may name another kind in ``spec.kind``."""
    outer = reader.text(document.get("kind"), "kind") or ""
    spec = document.get("spec")
    inner = (reader.text(spec.get("kind"), "spec.kind") or "") if is_own and isinstance(spec, Mapping) else ""
    name = inner if outer == "Job" and inner else outer
    if inner and inner != name:
        reader.fail("spec.kind", f"must be {outer}, the kind of the document")
    found = next((kind for kind in kinds if kind.name == name), None)
    found = found or next((kind for kind in kinds if kind.is_default), None)
    if found is None or not name:
        served = ", ".join(kind.name for kind in kinds)
        reader.fail("kind", f"unknown kind {name or '(none)'}; the served kinds are {served}")
        return None
    return name, found


def _kubeflow_spec(reader: _Reader, name: str, kind: KindForm, members: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the spec of a manifest of Kubeflow: the kind's own members become the kind spec."""
    field = kind.replica_specs_field
    rest = {key: value for key, value in members.items() if key not in (field, "runPolicy")}
    policy = reader.object(members.get("runPolicy"), "spec.runPolicy")
    merged = dict(policy or {})
    lifted = {key: rest.pop(key) for key in _LIFTED if key in rest}
    for key, value in lifted.items():
        if value is None:
            continue
        if merged.get(key) is not None and merged[key] != value:
            reader.fail(f"spec.{key}", f"must be omitted, or equal to spec.runPolicy.{key}")
        merged[key] = value
    manager = reader.text(merged.pop("managedBy", None), "spec.runPolicy.managedBy")
    if manager and manager not in _MANAGERS:
        reader.fail("spec.runPolicy.managedBy", f"is managed by {manager[:80]}; remove managedBy to run it here")
    return _sent(
        kind=name,
        replicaSpecs=_replicas(reader, members.get(field), f"spec.{field}"),
        runPolicy=_run_policy(reader, merged) if policy is not None or merged else None,
        kindSpec=rest or None,
    )


def _own_spec(reader: _Reader, name: str, kind: KindForm, members: Mapping[str, Any]) -> dict[str, Any]:
    reader.only_known(members, "spec", _OWN_SPEC)
    replicas = members.get("replicaSpecs")
    policy = reader.object(members.get("runPolicy"), "spec.runPolicy")
    placement = reader.object(members.get("placement"), "spec.placement")
    return _sent(
        kind=name,
        replicaSpecs={} if kind.without_pods and replicas is None else _replicas(reader, replicas, "spec.replicaSpecs"),
        runPolicy=None if policy is None else _run_policy(reader, policy),
        kindSpec=reader.object(members.get("kindSpec"), "spec.kindSpec"),
        inputs=reader.object(members.get("inputs"), "spec.inputs"),
        priority=reader.number(members.get("priority"), "spec.priority"),
        priorityClassName=reader.text(members.get("priorityClassName"), "spec.priorityClassName"),
        placement=None if placement is None else _placement(reader, placement),
    )


def _replicas(reader: _Reader, value: Any, path: str) -> dict[str, Any]:
    roles = reader.object(value, path)
    if roles is None:
        reader.fail(path, "is required")
    replicas = {}
    for role, inner in (roles or {}).items():
        at = f"{path}.{role}"
        spec = reader.object(inner, at) or {}
        reader.only_known(spec, at, ("replicas", "restartPolicy", "template", "topology"))
        policy = reader.word(spec.get("restartPolicy"), f"{at}.restartPolicy", _RESTART_POLICIES)
        replicas[role] = _sent(
            replicas=reader.number(spec.get("replicas"), f"{at}.replicas"),
            restartPolicy=_enum("restartPolicy", policy),
            template=reader.object(spec.get("template"), f"{at}.template"),
            topology=_wish(reader, spec.get("topology"), f"{at}.topology"),
        )
    return replicas


def _run_policy(reader: _Reader, policy: Mapping[str, Any]) -> dict[str, Any]:
    at = "runPolicy"
    reader.only_known(policy, f"spec.{at}", _RULES["runPolicy"])
    read = {name: _member(reader, policy.get(name), f"{at}.{name}") for name in policy if f"{at}.{name}" in _BY_FIELD}
    scheduling = reader.object(policy.get("schedulingPolicy"), f"spec.{at}.schedulingPolicy")
    return _sent(
        **read,
        suspend=reader.flag(policy.get("suspend"), f"spec.{at}.suspend"),
        schedulingPolicy=None if scheduling is None else _scheduling(reader, scheduling),
    )


def _scheduling(reader: _Reader, policy: Mapping[str, Any]) -> dict[str, Any]:
    at = "runPolicy.schedulingPolicy"
    reader.only_known(policy, f"spec.{at}", _RULES["schedulingPolicy"])
    read = {name: _member(reader, policy.get(name), f"{at}.{name}") for name in policy if f"{at}.{name}" in _BY_FIELD}
    return _sent(
        **read,
        minResources=reader.map(policy.get("minResources"), f"spec.{at}.minResources", lenient=True),
        priorityClass=reader.text(policy.get("priorityClass"), f"spec.{at}.priorityClass"),
    )


def _placement(reader: _Reader, placement: Mapping[str, Any]) -> dict[str, Any]:
    at = "spec.placement"
    reader.only_known(placement, at, ("clusters", "clusterSelector", "gpuModels", "topology"))
    return _sent(
        clusters=reader.texts(placement.get("clusters"), f"{at}.clusters"),
        clusterSelector=reader.map(placement.get("clusterSelector"), f"{at}.clusterSelector"),
        gpuModels=reader.texts(placement.get("gpuModels"), f"{at}.gpuModels"),
        topology=_wish(reader, placement.get("topology"), f"{at}.topology"),
    )


def _wish(reader: _Reader, value: Any, path: str) -> dict[str, Any] | None:
    """How near each other pods run. An empty wish is none."""
    wish = reader.object(value, path) or {}
    reader.only_known(wish, path, ("required", "preferred", "slices"))
    slices = wish.get("slices")
    if slices is not None and not isinstance(slices, (list, tuple)):
        reader.fail(f"{path}.slices", "must be a list of levels and sizes")
        slices = None
    read = _sent(
        required=reader.text(wish.get("required"), f"{path}.required") or None,
        preferred=reader.text(wish.get("preferred"), f"{path}.preferred") or None,
        slices=[_slice(reader, one, f"{path}.slices[{index}]") for index, one in enumerate(slices or ())] or None,
    )
    return read or None


def _slice(reader: _Reader, value: Any, path: str) -> dict[str, Any]:
    members = reader.object(value, path) or {}
    reader.only_known(members, path, ("level", "size"))
    return _sent(
        level=reader.text(members.get("level"), f"{path}.level"),
        size=reader.number(members.get("size"), f"{path}.size"),
    )


def _member(reader: _Reader, value: Any, field: str) -> Any:
    """A member that is also a setting, as the JSON of the API."""
    setting, path = _BY_FIELD[field], f"spec.{field}"
    kind = setting["of"]
    if kind == "text":
        return reader.text(value, path)
    if kind == "flag":
        return reader.flag(value, path)
    if kind == "duration":
        return reader.duration(value, path)
    if kind == "word":
        return _enum(field.rpartition(".")[2], reader.word(value, path, setting["words"]))
    return reader.number(value, path, wide=field.endswith(("activeDeadlineSeconds", "FailureThreshold")))


def _enum(member: str, word: str | None) -> str | None:
    if word is None:
        return None
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).upper()
    return f"{_ENUMS[member]}_{snake}"


def _take_settings(reader: _Reader, metadata: dict[str, Any], spec: dict[str, Any], *, is_foreign: bool) -> None:
    """Moves annotations that are settings into the spec. Of manifests of other systems, takes those of Kueue too."""
    values: dict[str, Any] = {}
    kept = {}
    for key, text in metadata.get("annotations", {}).items():
        name = key[len(OWN_PREFIX) :] if key.startswith(OWN_PREFIX) else ""
        if name not in _SETTINGS:
            kept[key] = text
            if name and key != _EXPECT:
                reader.warnings.append(f"metadata.annotations.{key[:80]} is ignored")
            continue
        value = _setting_value(reader, _SETTINGS[name], text.strip(), f"metadata.annotations.{key}")
        if value is not None:
            values[name] = value
    if "annotations" in metadata:
        metadata["annotations"] = kept
    for name, rival in _RIVALS:
        if name in values and rival not in values and _get(spec, _SETTINGS[rival]["field"]) is not None:
            _set(spec, _SETTINGS[rival]["field"], None)
    for name, value in values.items():
        _set(spec, _SETTINGS[name]["field"], value)
    if is_foreign:
        _take_kueue(reader, metadata, spec)


def _take_kueue(reader: _Reader, metadata: Mapping[str, Any], spec: dict[str, Any]) -> None:
    for place, key, name in _KUEUE:
        text = metadata.get(place, {}).get(key)
        setting = _SETTINGS[name]
        if text is None or _get(spec, setting["field"]) is not None:
            continue
        given = f"{text}s" if name == "max-runtime" and re.match(r"^[0-9]{1,10}$", text) else text
        value = _setting_value(reader, setting, given, f"metadata.{place}.{key}")
        if value is not None:
            _set(spec, setting["field"], value)
    policy = spec.get("runPolicy", {})
    if metadata.get("labels", {}).get(_QUEUE_LABEL) and policy.get("suspend") is True:
        policy["suspend"] = False
        reader.warnings.append(
            f"spec.runPolicy.suspend is taken as run when admitted, as Kueue does, because of the label {_QUEUE_LABEL}"
        )


def _setting_value(reader: _Reader, setting: Mapping[str, Any], text: str, path: str) -> Any:
    """The value of an annotation, as the JSON of the API."""
    kind, least = setting["of"], setting.get("least", -_INT32_MAX)
    if not text:
        reader.fail(path, "must not be empty")
        return None
    if kind == "text":
        return text
    if kind == "duration":
        return reader.duration(text, path)
    if kind == "word":
        return _enum(setting["field"].rpartition(".")[2], reader.word(text, path, setting["words"]))
    if kind == "flag":
        if text in ("true", "false"):
            return text == "true"
        reader.fail(path, "must be true or false")
        return None
    items = [item.strip() for item in text.split(",") if item.strip()]
    if kind == "texts":
        return items
    if kind == "map":
        if not all(item.find("=") > 0 for item in items):
            reader.fail(path, "must be KEY=VALUE, with commas between several")
            return None
        return {key.strip(): value.strip() for key, _, value in (item.partition("=") for item in items)}
    span = _duration_ms(text) if kind == "seconds" else None
    if span is not None and span % 1000 == 0:
        text = str(span // 1000)
    if re.match(r"^-?[0-9]{1,16}$", text) and least <= int(text) <= _INT32_MAX:
        return int(text)
    unit = ", or a duration such as 10m" if kind == "seconds" else ""
    reader.fail(path, f"must be a whole number from {least} to {_INT32_MAX}{unit}")
    return None


def _set(spec: dict[str, Any], field: str, value: Any) -> None:
    *outer, last = field.split(".")
    for name in outer:
        spec = spec.setdefault(name, {})
    spec[last] = value


def _get(spec: Mapping[str, Any], field: str) -> Any:
    value: Any = spec
    for name in field.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
