"""Runs flows on a scripted service and a clock that only pauses move."""

from __future__ import annotations

import logging
from typing import Any, Callable

from gangway._flow import Call, Emit, Env, Flow, Next, Open, Pause

# Tests that look at warnings catch them.
logging.getLogger("gangway").addHandler(logging.NullHandler())
logging.getLogger("gangway").propagate = False


class Scripted:
    """Answers effects from a script: an answer, an error, or a function of the request. A stream is a list of them."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.seconds = 1000.0
        self.calls: list[Any] = []
        self.pauses: list[float] = []
        self.emitted: list[Any] = []
        self._stream: list[Any] = []
        self.env = Env(now=lambda: self.seconds, random=lambda: 1.0)

    def run(self, flow: Flow[Any], stop: Callable[[Any], bool] = lambda value: False) -> Any:
        """The result of a flow. ``stop``: closes it after a value that it emits."""
        try:
            effect = next(flow)
            while True:
                try:
                    answer = self._perform(effect)
                except Exception as error:
                    effect = flow.throw(error)
                    continue
                if isinstance(effect, Emit) and stop(effect.value):
                    flow.close()
                    return None
                effect = flow.send(answer)
        except StopIteration as end:
            return end.value

    def _perform(self, effect: Any) -> Any:
        if isinstance(effect, Pause):
            self.pauses.append(effect.seconds)
            self.seconds += effect.seconds
            return None
        if isinstance(effect, Emit):
            self.emitted.append(effect.value)
            return None
        if isinstance(effect, Open):
            self.calls.append(effect)
            self._stream = list(self.script.pop(0))
            return None
        if isinstance(effect, Next):
            return self._answer(self._stream.pop(0), effect) if self._stream else None
        assert isinstance(effect, Call)
        self.calls.append(effect)
        return self._answer(self.script.pop(0), effect.request)

    def _answer(self, item: Any, request: Any) -> Any:
        if callable(item):
            item = item(request)
        if isinstance(item, Exception):
            raise item
        return item
