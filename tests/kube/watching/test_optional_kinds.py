"""A kind that a server need not serve: absent it is no error, and it is found once it is there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from policyengine.cluster.kinds import CONFIG_MAPS
from policyengine.kube.watching.reflector import ABSENT_FOR
from tests.kube.scripted_server import config_map, failure, listed, watched
from tests.kube.watching import follower

ABSENT = failure(404, "NotFound")


def follow(seconds: float, *script: Any) -> follower.Follower:
    return follower.follow(*script, seconds=seconds, resource=replace(CONFIG_MAPS, is_optional=True))


def test_a_kind_the_server_does_not_serve_counts_as_listed_and_is_nobodys_problem() -> None:
    got = follow(ABSENT_FOR / 2, ABSENT)
    assert (got.seen, got.reflector.synced.is_set(), got.problems) == ([], True, [])


def test_it_is_asked_for_again_and_found_when_it_is_served() -> None:
    got = follow(ABSENT_FOR * 1.5, ABSENT, listed(5, config_map("a", 3)), watched())
    assert (got.seen, got.reflector.synced.is_set()) == (["a@3"], True)


def test_when_it_is_served_no_more_its_objects_are_gone() -> None:
    assert follow(ABSENT_FOR / 2, listed(5, config_map("a", 3)), ABSENT, ABSENT).seen == ["a@3", "-a"]
