"""Schedulers driven by a policy of a few members, as one writes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from policyengine.framework.profile import Profile
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import Action, Log
from tests.scheduler.driver import NAME, Driver


@cache
def policy(members: str) -> Profile:
    """The profile of a policy with these members for the drivers' pods."""
    return compile_policy(f'policy "t" {{\n  scheduler "{NAME}"\n{members}\n}}')


def driven(members: str) -> Driver:
    return Driver(policy(members))


def lines(actions: Sequence[Action]) -> list[str]:
    return [f"{action.point}: {action.message}" for action in actions if isinstance(action, Log)]
