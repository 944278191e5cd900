"""Where the right to bind is missing: known from refusals, until a binding succeeds or nothing waits for it."""

import asyncio

import pytest

from policyengine.kube.writing.bindings import REMEMBERED, BindingRights
from policyengine.scheduler.messages import BindFailed, BindFailure, BindSucceeded
from tests.kube.virtual_time import VirtualClock, run

FORBIDDEN = 'pods "p" is forbidden: User "u" cannot create resource "pods/binding" in API group "" in the namespace "n"'
ENDING = 'pods "p" is forbidden: unable to create new content in namespace n because it is being terminated'
WEBHOOK = 'admission webhook "w" denied the request: pods/binding may wait'


def refused(message: str = FORBIDDEN) -> BindFailed:
    return BindFailed("u", BindFailure.REFUSED, message)


def test_a_refusal_counts_until_a_binding_in_that_namespace_succeeds() -> None:
    async def work() -> None:
        rights = BindingRights(VirtualClock())
        assert rights.problem(0.0) == ""
        for namespace in ("b", "a", "b"):
            rights.note(namespace, refused())
        assert rights.problem(0.0) == f"pods of namespace `a` and 1 more may not be bound: {FORBIDDEN}"
        rights.note("c", BindSucceeded("u"))
        rights.note("a", BindSucceeded("u"))
        assert rights.problem(0.0).startswith("pods of namespace `b` may not")
        rights.note("b", BindSucceeded("u"))
        assert rights.problem(0.0) == ""

    run(work())


@pytest.mark.parametrize("longest_backoff", [0.0, 600.0])
def test_it_is_remembered_for_as_long_as_pods_may_wait_for_their_next_try(longest_backoff: float) -> None:
    async def work() -> None:
        rights = BindingRights(VirtualClock())
        rights.note("a", refused())
        await asyncio.sleep(longest_backoff + REMEMBERED)
        assert rights.problem(longest_backoff)
        await asyncio.sleep(1)
        assert rights.problem(longest_backoff) == ""

    run(work())


@pytest.mark.parametrize("message", [ENDING, WEBHOOK])
def test_what_is_refused_for_another_reason_is_no_missing_right(message: str) -> None:
    async def work() -> None:
        rights = BindingRights(VirtualClock())
        rights.note("a", refused(message))
        assert rights.problem(0.0) == ""

    run(work())
