"""What tests against a real service share: whom they ask for a fault, and how they wait."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from typing import Any, Callable

WAIT_S_MAX = 240.0
"""Long enough for a busy machine: a condition that does not hold by then will never hold."""
IMAGE = "registry.example/train:1"


def ask(action: str) -> None:
    """Asks the process that started this one for an action, such as ``cut``, and waits until it is done."""
    print(f"ask {action}", flush=True)
    if sys.stdin.readline().strip() != "done":
        raise AssertionError(f"{action} was not done")


def line_address() -> str:
    """The service through the line that ``cut`` cuts."""
    return os.environ["GANGWAY_LINE"]


def until(what: str, holds: Callable[[], Any]) -> Any:
    """The first true result of ``holds``."""
    ends_at = time.monotonic() + WAIT_S_MAX
    while True:
        result = holds()
        if result:
            return result
        if time.monotonic() > ends_at:
            raise AssertionError(f"waited until {what}, which did not happen")
        time.sleep(0.01)


def in_thread(run: Callable[[], Any]) -> Callable[[], Any]:
    """Runs something in a thread. Returns what waits for its result, or raises its error."""
    outcome: list[tuple[Any, BaseException | None]] = []

    def body() -> None:
        try:
            outcome.append((run(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=body, daemon=True)
    thread.start()

    def result() -> Any:
        thread.join(WAIT_S_MAX)
        value, error = outcome[0]
        if error is not None:
            raise error
        return value

    return result


class Heard(logging.Handler):
    """Catches the log lines of the client while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def __enter__(self) -> Heard:
        self._level = logging.getLogger("gangway").level
        logging.getLogger("gangway").addHandler(self)
        logging.getLogger("gangway").setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("gangway").removeHandler(self)
        logging.getLogger("gangway").setLevel(self._level)

    def until(self, part: str) -> None:
        until(f"the client logs {part!r}", lambda: any(part in line for line in self.lines))
