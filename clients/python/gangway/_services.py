"""The methods of the API, by service. ``_services.pyi`` has their types and comments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from ._descriptors import message_class, services


@dataclass(frozen=True)
class Rpc:
    """One method of the API."""

    service: str
    name: str
    path: str
    request: Any
    response: Any
    is_stream: bool


# Every stream of the API is named so, and no other method is. Descriptors say it only in later releases of protobuf.
_STREAMS = ("WatchJobs", "StreamJobLogs", "WaitForResource")


def _rpcs() -> dict[str, Rpc]:
    rpcs = {}
    for service in services():
        for method in service.methods:
            rpcs[f"{service.name}/{method.name}"] = Rpc(
                service=service.name,
                name=method.name,
                path=f"/{service.full_name}/{method.name}",
                request=message_class(method.input_type),
                response=message_class(method.output_type),
                is_stream=method.name in _STREAMS,
            )
    return rpcs


RPCS = _rpcs()


class _Service:
    """Has a method for each one of a service."""

    def __init__(self, service: str, caller: Callable[..., Any]) -> None:
        for rpc in RPCS.values():
            if rpc.service == service:
                setattr(self, rpc.name, _method(rpc, caller))


def _method(rpc: Rpc, caller: Callable[..., Any]) -> Callable[..., Any]:
    def call(request: Any, *, timeout: float | None = None) -> Any:
        return caller(rpc, request, timeout)

    call.__name__ = rpc.name
    return call


def bind(service: str, caller: Callable[..., Any]) -> Any:
    """An object with the methods of a service. ``caller`` gets the method, the request and the timeout."""
    return _Service(service, caller)
