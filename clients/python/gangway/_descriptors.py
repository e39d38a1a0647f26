"""Makes message classes from ``gangway.binpb``, in a pool of their own.

Nothing here is bound to one release of protobuf, or clashes with other users of Google's protos in the process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

POOL = descriptor_pool.DescriptorPool()


def _load() -> list[Any]:
    described = descriptor_pb2.FileDescriptorSet.FromString(Path(__file__).with_name("gangway.binpb").read_bytes())
    for file in described.file:
        POOL.AddSerializedFile(file.SerializeToString())
    return [POOL.FindFileByName(file.name) for file in described.file]


FILES = _load()
"""The descriptors of all files, each after those that it imports."""

# Releases of protobuf before 4.22 have only the second one.
_class_of = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(POOL).GetPrototype


def message_class(descriptor: Any) -> Any:
    """The class of a message, with the classes of the messages that are declared in it as its members."""
    made = _class_of(descriptor)
    for nested in descriptor.nested_types:
        if not nested.GetOptions().map_entry and not hasattr(made, nested.name):
            setattr(made, nested.name, message_class(nested))
    return made


def services() -> Iterator[Any]:
    """The descriptors of the services of the API."""
    for file in FILES:
        yield from file.services_by_name.values()
