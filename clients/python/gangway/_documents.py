"""Reads the documents of a manifest: YAML as the command line reads it, or JSON. Bounded in bytes, depth and values."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any, Mapping

from .errors import ManifestError

TEXT_BYTES_MAX = 16 * 1024 * 1024
"""As much as the service takes in one request."""
DEPTH_MAX = 64
ALIASES_MAX = 1_000
VALUES_MAX = 1_000_000
"""The most values of one document after its aliases are expanded."""


def documents_of(source: str | os.PathLike[str] | Mapping[str, Any]) -> list[Any]:
    """The documents of a manifest: a mapping is one, a text is YAML or JSON, a path names a file of it.

    Objects of a ``List``, as kubectl prints several, are documents of their own. Raises ManifestError.
    """
    if isinstance(source, Mapping):
        found: list[Any] = [source]
    else:
        found = _parse(_text_of(source))
    documents = []
    for document in found:
        if isinstance(document, Mapping) and document.get("apiVersion") == "v1" and document.get("kind") == "List":
            documents += list(document.get("items") or [])
        elif document is not None:
            documents.append(document)
    for document in documents:
        _check(document)
    return documents


def _text_of(source: str | os.PathLike[str]) -> str:
    if isinstance(source, str):
        if "\n" not in source and re.search(r"\.(ya?ml|json)$", source):
            raise ManifestError([f"{source} looks like the name of a file: pass pathlib.Path({source!r}) to read it"])
        if len(source) > TEXT_BYTES_MAX:
            raise ManifestError([f"the manifest must have at most {TEXT_BYTES_MAX} bytes"])
        return source
    path = os.fspath(source)
    try:
        with open(path, "rb") as file:
            content = file.read(TEXT_BYTES_MAX + 1)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError([f"{path} cannot be read: {error}"]) from error
    if len(content) > TEXT_BYTES_MAX:
        raise ManifestError([f"{path} must have at most {TEXT_BYTES_MAX} bytes"])
    return text


def _parse(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except ValueError as error:
        failure = error
    except RecursionError as error:
        raise ManifestError([f"the manifest must nest at most {DEPTH_MAX} levels"]) from error
    try:
        import yaml
    except ImportError as error:
        raise ManifestError([f"the manifest is no JSON ({failure}), and YAML needs the package PyYAML"]) from error
    try:
        return list(yaml.load_all(text, _loader(yaml)))
    except (yaml.YAMLError, RecursionError) as error:
        raise ManifestError([f"the manifest is not YAML: {error}"]) from error


def _loader(yaml: Any) -> Any:
    """A loader of YAML 1.2, in which ``on`` and ``12:30`` are texts. Duplicate keys and many aliases are errors."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}
        aliases = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                self.aliases += 1
                if self.aliases > ALIASES_MAX:
                    mark = self.peek_event().start_mark
                    raise yaml.composer.ComposerError(None, None, f"more than {ALIASES_MAX} aliases", mark)
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    why = "keys must be texts; templates with {{ }} must be rendered first"
                    raise yaml.constructor.ConstructorError(None, None, why, key.start_mark)
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    raise yaml.constructor.ConstructorError(None, None, "a key is given twice", key.start_mark)
                seen.add(key.value)
                if key.tag != "tag:yaml.org,2002:merge":
                    key.tag = "tag:yaml.org,2002:str"
            return super().construct_mapping(node, deep)

    def int_of(loader: Any, node: Any) -> int:
        text = node.value
        if re.match(r"^0[xo]", text):
            return int(text[2:], 16 if text[1] == "x" else 8)
        return int(text, 8) if re.match(r"^0[0-7]+$", text) else int(text)

    def float_of(loader: Any, node: Any) -> float:
        return float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))

    core = (
        ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
        ("int", r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
        (
            "float",
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
            "-+.0123456789",
        ),
        ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
        ("merge", r"^<<$", "<"),
    )
    for name, pattern, first in core:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(pattern), list(first))
    Loader.add_constructor("tag:yaml.org,2002:int", int_of)
    Loader.add_constructor("tag:yaml.org,2002:float", float_of)
    return Loader


def _check(document: Any) -> None:
    """Raises ManifestError for what JSON does not have, and for a document that aliases make too large."""
    left = VALUES_MAX
    # Depth first without recursion: a value, its depth, and its path.
    stack: list[tuple[Any, int, str]] = [(document, 0, "")]
    while stack:
        value, depth, path = stack.pop()
        left -= 1
        if left < 0:
            raise ManifestError([f"the manifest has more than {VALUES_MAX} values"])
        if depth > DEPTH_MAX:
            raise ManifestError([f"the manifest must nest at most {DEPTH_MAX} levels"])
        if isinstance(value, Mapping):
            for key, inner in value.items():
                if not isinstance(key, str):
                    raise ManifestError([f"{path or 'the manifest'}: keys must be texts, not {key!r}"])
                stack.append((inner, depth + 1, f"{path}.{key}" if path else key))
        elif isinstance(value, (list, tuple)):
            stack.extend((inner, depth + 1, f"{path}[{at}]") for at, inner in enumerate(value))
        elif isinstance(value, float) and not math.isfinite(value):
            raise ManifestError([f"{path}: must be a finite number"])
        elif not (value is None or isinstance(value, (str, int, float, bool))):
            raise ManifestError([f"{path}: must be text, a number, true, false or null, not {type(value).__name__}"])
