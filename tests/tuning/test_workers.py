"""Who plays, and what is said where nobody can."""

import sys
from types import SimpleNamespace

import pytest

from policyengine.tuning.workers import Ray, WorkersUnusable


@pytest.mark.parametrize("error", [ConnectionError, RuntimeError, Exception])
def test_a_ray_that_does_not_come_up_is_one_sentence(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**given: object) -> None:
        raise error("The current node timed out during startup.\nThis could happen because")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    with pytest.raises(WorkersUnusable, match=r"^Ray at `local`: The current node timed out during startup\.$"):
        Ray(str, "local")
