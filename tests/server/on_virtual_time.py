"""A test that is a coroutine, run to its end on virtual time."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

from tests.kube.virtual_time import run

P = ParamSpec("P")


def virtually(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @wraps(test)
    def whole(*given: P.args, **named: P.kwargs) -> None:
        run(test(*given, **named))

    return whole
