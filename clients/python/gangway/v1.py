"""Messages and enums of the API, and those of Google that they use. ``v1.pyi`` has their types and comments."""

from typing import Any

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

from ._descriptors import FILES, message_class


def _types() -> dict[str, Any]:
    types: dict[str, Any] = {}
    for file in FILES:
        for name, message in file.message_types_by_name.items():
            types[name] = message_class(message)
        for name, enum in file.enum_types_by_name.items():
            types[name] = EnumTypeWrapper(enum)
            types.update({value.name: value.number for value in enum.values})
    return types


_made = _types()
globals().update(_made)
__all__ = ["Message", *_made]
