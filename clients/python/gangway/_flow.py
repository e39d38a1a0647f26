"""Flows: what the client does, step by step, as generators.

A flow yields an effect, and gets its result or its error. It never waits itself. So a flow is written once: ``Client``
carries effects out by blocking calls, ``gangway.aio`` by coroutines.
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Generator, Generic, TypeVar, Union

from ._services import Rpc

T = TypeVar("T")

LOG = logging.getLogger("gangway")


@dataclass(frozen=True)
class Call:
    """Makes one try of a call with one answer. Its result is the answer; its error a CallError."""

    rpc: Rpc
    request: Any
    timeout: float


@dataclass(frozen=True)
class Open:
    """Opens a stream, and ends the one before. Its errors come with the first ``Next``."""

    rpc: Rpc
    request: Any
    timeout: float | None


@dataclass(frozen=True)
class Next:
    """Its result is the next message of the open stream, or None at the end of the stream."""


@dataclass(frozen=True)
class Pause:
    """Waits, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Emit(Generic[T]):
    """Gives a value to the caller of the flow, which asks for the next one when it has handled this one."""

    value: T


Effect = Union[Call, Open, Next, Pause, Emit[Any]]
Flow = Generator[Effect, Any, T]


def _boot_clock() -> Callable[[], float]:
    """A clock that never steps, and goes on while the machine sleeps where the system has such a clock."""
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    if clock is None:
        return time.monotonic
    return partial(time.clock_gettime, clock)


@dataclass(frozen=True)
class Env:
    """Time and chance, which tests replace."""

    now: Callable[[], float] = _boot_clock()
    """Seconds of a monotonic clock."""
    random: Callable[[], float] = random.random


def consume(flow: Flow[Any], take: Callable[[Any], T | None]) -> Flow[T | None]:
    """Gives ``take`` each value that a flow emits. Returns the first result of ``take`` that is not None."""
    try:
        effect = next(flow)
        while True:
            if isinstance(effect, Emit):
                result = take(effect.value)
                if result is not None:
                    return result
                effect = flow.send(None)
                continue
            try:
                answer = yield effect
            except BaseException as error:
                effect = flow.throw(error)
            else:
                effect = flow.send(answer)
    except StopIteration:
        return None
    finally:
        flow.close()
