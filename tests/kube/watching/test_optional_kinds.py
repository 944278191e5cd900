"""A kind that a server need not serve: absent it is no error, and it is found once it is there."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from policyengine.cluster.kinds import CONFIG_MAPS
from policyengine.cluster.workload_objects import ConfigMap
from policyengine.kube.watching.absent_kinds import ABSENT_FOR
from tests.kube.scripted_server import Asked, ScriptedServer, config_map, failure, listed, watched
from tests.kube.virtual_time import run
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


class OlderForm(ConfigMap, frozen=True):
    """The kind's form in its older version."""


OLD = replace(CONFIG_MAPS, group_path="/apis/example.com/v1alpha1", type=OlderForm)
NEW = replace(CONFIG_MAPS, group_path="/apis/example.com/v1beta1", is_optional=True, older=(OLD,))


def in_versions(*script: Any, seconds: float = ABSENT_FOR / 2) -> follower.Follower:
    return follower.follow(*script, seconds=seconds, resource=NEW)


def test_a_kind_is_listed_and_watched_in_the_newest_version_that_is_served() -> None:
    got = in_versions(ABSENT, listed(5, config_map("a", 3)), watched())
    assert got.seen == ["a@3"]
    assert [one.path for one in got.server.asked] == [NEW.path(), OLD.path(), OLD.path(), OLD.path()]


def test_the_newest_version_is_all_that_a_server_is_asked_for_that_serves_it() -> None:
    got = in_versions(listed(5, config_map("a", 3)), watched())
    assert {one.path for one in got.server.asked} == {NEW.path()}


def test_a_kind_that_is_served_in_no_version_has_no_objects_and_is_asked_for_again_in_each() -> None:
    got = in_versions(ABSENT, ABSENT, ABSENT, listed(5, config_map("a", 3)), watched(), seconds=ABSENT_FOR * 1.5)
    assert got.seen == ["a@3"]
    assert [one.path for one in got.server.asked][:4] == [NEW.path(), OLD.path()] * 2


def test_after_an_upgrade_every_object_is_told_in_its_newer_form_and_none_is_gone_meanwhile() -> None:
    before = listed(5, config_map("a", 3))
    got = in_versions(ABSENT, before, ABSENT, ABSENT, listed(6, config_map("a", 3)), watched())
    assert (got.seen, got.forms) == (["a@3", "a@3"], [OlderForm, ConfigMap])
    assert got.server.asked[-1].path == NEW.path()


def test_a_refusal_is_no_reason_to_ask_for_another_version() -> None:
    got = in_versions(failure(403, "Forbidden"))
    assert [one.path for one in got.server.asked[:2]] == [NEW.path()] * 2 and got.problems


def test_it_is_asked_for_again_soon_where_the_server_goes_back_while_it_is_asked() -> None:
    def answer(asked: Asked) -> Any:
        if len(server.asked) == 1:
            history = got.reflector._history
            asyncio.get_running_loop().call_later(0.5, history.went_back, "an older version", history.generation)
        return replace(ABSENT, after=1.0)

    server = ScriptedServer(handler=answer)
    got = follower.Follower(server, replace(CONFIG_MAPS, is_optional=True))
    run(got.follow(ABSENT_FOR / 2))
    assert len(server.asked) == 2
    assert got.reflector.generation == 1
