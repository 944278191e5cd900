"""Whether the server lets us in: one that starts is waited for, one that has started means what it says."""

from collections.abc import Callable

import pytest

from policyengine.kube.config import access
from policyengine.kube.config.access import PATIENCE, AccessDenied, Unreachable, await_access
from policyengine.kube.http.client import Client, ConnectionFailed
from tests.kube.scripted_server import Answer, Asked, ScriptedServer, failure, listed
from tests.kube.virtual_time import VirtualClock, run

STARTED = 20.0
"""Seconds after which the server has started."""
FORBIDDEN = failure(403, "Forbidden", 'nodes is forbidden: RBAC: clusterrole "x" not found')


def served(nodes: Callable[[float], Answer], ready: Callable[[float], Answer]) -> tuple[float, list[str], str]:
    """When nodes could be listed or it was given up, what was said meanwhile, and the complaint."""
    waits: list[str] = []

    async def work() -> tuple[float, str]:
        clock = VirtualClock()

        def answer(asked: Asked) -> Answer:
            return (ready if asked.path == "/readyz" else nodes)(clock.monotonic())

        try:
            await await_access(Client(ScriptedServer(handler=answer)), "https://x", "file", clock, waits.append)
        except (AccessDenied, Unreachable) as error:
            return clock.monotonic(), f"{type(error).__name__}: {error}"
        return clock.monotonic(), ""

    at, complaint = run(work())
    return at, waits, complaint


@pytest.mark.parametrize(
    "at_first", [FORBIDDEN, failure(503, "ServiceUnavailable", "starting"), failure(429), failure(500)]
)
@pytest.mark.parametrize("not_ready", [failure(403), failure(500)])
def test_a_server_that_starts_is_waited_for(at_first: Answer, not_ready: Answer) -> None:
    at, waits, complaint = served(
        lambda now: at_first if now < STARTED else listed(1), lambda now: not_ready if now < STARTED else Answer()
    )
    assert STARTED <= at <= STARTED + access.EVERY and not complaint
    assert "does not let nodes be listed yet" in waits[0]


def test_a_right_that_is_missing_on_a_server_that_runs_is_told_at_once() -> None:
    at, _, complaint = served(lambda now: FORBIDDEN, lambda now: Answer())
    assert at <= 2 * access.EVERY
    assert complaint.startswith("AccessDenied: the API server `https://x` refuses to list nodes")


def test_a_role_that_is_bound_a_moment_later_is_waited_for() -> None:
    at, _, complaint = served(lambda now: FORBIDDEN if now < access.EVERY else listed(1), lambda now: Answer())
    assert at == access.EVERY and not complaint


def test_where_nobody_may_ask_whether_the_server_runs_patience_ends() -> None:
    at, _, complaint = served(lambda now: FORBIDDEN, lambda now: FORBIDDEN)
    assert PATIENCE <= at <= PATIENCE + access.EVERY
    assert "have a role that may list them bound" in complaint


def test_a_server_that_is_never_there_is_told_so_in_the_end() -> None:
    at, _, complaint = served(lambda now: failure(503, "", "no backends"), lambda now: failure(503))
    assert PATIENCE <= at <= PATIENCE + access.EVERY
    assert "does not answer as an API server: no backends" in complaint


@pytest.mark.parametrize("answer", [failure(401, "Unauthorized"), failure(404), Answer(200, b"<html>hello</html>")])
def test_what_no_server_that_starts_would_say_is_not_waited_for(answer: Answer) -> None:
    at, waits, complaint = served(lambda now: answer, lambda now: Answer())
    assert at == 0 and not waits and complaint


def test_a_server_that_nobody_reaches_is_not_waited_for() -> None:
    async def work() -> None:
        server = ScriptedServer(ConnectionFailed("refused", sent=False))
        with pytest.raises(Unreachable, match="cannot reach"):
            await await_access(Client(server), "https://x", "file", VirtualClock(), lambda what: None)

    run(work())
