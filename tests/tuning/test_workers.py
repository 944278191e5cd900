"""Who plays, and what is said where nobody can."""

import sys
from functools import partial
from types import SimpleNamespace

import pytest

from policyengine.tuning.workers import Ray, WorkersUnusable


def test_what_ray_has_finished_comes_first_and_in_the_order_asked_where_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a stand-in for Ray, which finishes the last task first."""
    ray = SimpleNamespace(
        init=lambda **given: None,
        put=lambda work: work,
        remote=lambda **given: lambda done: SimpleNamespace(remote=lambda work, task: partial(done, work, task)),
        wait=lambda asked: (asked[-1:], asked[:-1]),
        get=lambda one: one(),
        cancel=lambda one, force: None,
        exceptions=SimpleNamespace(RayTaskError=ZeroDivisionError, WorkerCrashedError=ZeroDivisionError),
        shutdown=lambda: None,
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    with Ray(str, "local") as workers:
        assert list(workers.answers([7, 8, 9])) == ["7", "8", "9"]
        assert list(workers.as_finished([7, 8, 9])) == [(2, "9"), (1, "8"), (0, "7")]


@pytest.mark.parametrize("error", [ConnectionError, RuntimeError, Exception])
def test_a_ray_that_does_not_come_up_is_one_sentence(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**given: object) -> None:
        raise error("The current node timed out during startup.\nThis could happen because")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    with pytest.raises(WorkersUnusable, match=r"^Ray at `local`: The current node timed out during startup\.$"):
        Ray(str, "local")
