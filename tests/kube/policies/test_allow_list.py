"""What ConfigMaps may do is what `policies.allow` says, however hostile their authors are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing

import pytest

from policyengine.cluster.kinds import CONFIG_MAPS, SCHEDULING_POLICIES
from policyengine.kube.config.configuration import read
from policyengine.kube.policies.allow_list import Allowed, allowed
from policyengine.kube.policies.compiling import compiled
from policyengine.kube.policies.precedence import Compiled, SourceKey
from policyengine.kube.policies.proving import Prover
from tests.faults import world as worlds
from tests.faults.objects import MAPS, MERGE
from tests.faults.world import World
from tests.kube.policies.reload_scenes import CANARY, PIN, change, config_map, played, serves, status, two_nodes
from tests.kube.policies.unruly import registry

HEAD = "apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\n"
TEAMS = """policies:
  allow:
  - from: [pin, pin-*]
    schedulerNames: [pinned]
  - from: [other]
    schedulerNames: [other-*, default-scheduler]
    annotations: [other.example.com/*, policyengine.io/note, scheduler.k8s.io/*]
"""
BIND = 'policy "p" {{ scheduler "s" bind {{ annotations: {{"{key}": "x"}} }} }}'


def of(name: str, text: str = "") -> Allowed:
    return allowed(name, read(HEAD + text, "x").data["policies"]["allow"])


@pytest.mark.parametrize(
    ("may", "scheduler", "refused"),
    [
        (of("any"), "anything", False),
        (of("any"), "default-scheduler", True),
        (of("pin", TEAMS), "pinned", False),
        (of("pin-2", TEAMS), "pinned", False),
        (of("pin", TEAMS), "pinned-2", True),
        (of("pinned", TEAMS), "pinned", True),
        (of("other", TEAMS), "other-1", False),
        (of("other", TEAMS), "other", True),
        (of("other", TEAMS), "default-scheduler", False),
        (of("x", "policies: {allow: [{schedulerNames: [default-*]}]}"), "default-scheduler", True),
        (of("x", "policies: {allow: []}"), "anything", True),
    ],
)
def test_a_scheduler_name_is_served_by_those_whom_an_entry_names(may: Allowed, scheduler: str, refused: bool) -> None:
    told = may.refusal(scheduler, ())
    assert bool(told) is refused
    assert not refused or f"`{may.name}` may not serve scheduler `{scheduler}`: `policies.allow` of the con" in told


@pytest.mark.parametrize(
    ("text", "key", "refused"),
    [
        ("", "example.com/zone", False),
        ("", "plain", False),
        ("", "notkubernetes.io/zone", False),
        ("", "kubernetes.io/config.source", True),
        ("", "scheduler.alpha.kubernetes.io/node-selector", True),
        ("", "node.k8s.io/x", True),
        ("", "policyengine.io/status", True),
        (TEAMS, "other.example.com/zone", False),
        (TEAMS, "example.com/zone", True),
        (TEAMS, "policyengine.io/note", False),
        (TEAMS, "policyengine.io/status", True),
        (TEAMS, "scheduler.k8s.io/x", False),
        (TEAMS, "k8s.io/x", True),
    ],
)
def test_an_annotation_is_written_by_those_whom_an_entry_names(text: str, key: str, refused: bool) -> None:
    problem = compiled({"a.policy": BIND.format(key=key)}, may=of("other", text + NAMES[text])).problem
    told = f"`other` may not write annotation `{key}`: `policies.allow` of the configuration names who may, under"
    assert (problem is not None) is refused
    assert problem is None or (problem.message, problem.line, problem.column) == (f"{told} `annotations`", 1, 1)


NAMES = {"": "", TEAMS: "  - schedulerNames: [s]\n"}


async def test_the_process_that_proves_texts_knows_what_they_may() -> None:
    allow = read(HEAD + TEAMS, "x").data["policies"]["allow"]
    with closing(Prover(registry, 2.0, allow=allow)) as prover:
        for name, refused in (("pin", False), ("kin", True)):
            text = {"a.policy": PIN.format(node="n1")}
            found = await prover.compiled(SourceKey("kube-system", name, "ConfigMap"), text, False)
            assert (found.problem is not None) is refused is bool(await prover.problem("jane", name, text))


@pytest.fixture
def teams(monkeypatch: pytest.MonkeyPatch) -> None:
    """`TEAMS` says who may do what."""

    async def compile_now(key: SourceKey, data: Mapping[str, str], is_tested: bool) -> Compiled:
        return compiled(data, may=of(key.name, TEAMS))

    monkeypatch.setattr(worlds, "compile_now", compile_now)


@pytest.mark.usefixtures("teams")
def test_whoever_may_not_serve_a_name_takes_it_over_by_no_means() -> None:
    async def scene(world: World) -> None:
        await two_nodes(world)
        theirs, mine = PIN.format(node="n1"), PIN.format(node="n2")
        # What is older than the one that serves turns to its scheduler name; a canary wants all of its pods.
        await config_map(world, "other", mine.replace("pinned", "other-1"))
        await config_map(world, "pin", theirs)
        serves(world, theirs)
        await change(world, "other", mine)
        await config_map(world, "canary", mine, CANARY)
        for name in ("other", "canary"):
            found = await status(world, name)
            assert (found["state"], found["line"]) == ("rejected", 1)
            assert found["message"].startswith(f"`{name}` may not serve scheduler `pinned`: `policies.allow`")
        await world.pod("p", scheduler="pinned")
        await asyncio.sleep(5)
        assert (await world.where())["p"] == "n1"
        # They wait for the day on which the one that serves goes, or loses its label.
        await world.call("PATCH", f"{MAPS}/pin", {"metadata": {"labels": None}}, MERGE)
        await asyncio.sleep(2)
        await world.pod("q", scheduler="pinned")
        await asyncio.sleep(5)
        assert (await world.where())["q"] == ""
        await world.call("DELETE", f"{MAPS}/pin")
        await config_map(world, "pin", theirs)
        await world.settle(10)
        assert (await world.where())["q"] == "n1"

    played(scene)


MANY = 60


def test_neither_many_nor_a_label_that_comes_and_goes_take_a_served_name_or_the_time_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proved: list[str] = []
    usual = worlds.compile_now

    async def counting(key: SourceKey, data: Mapping[str, str], is_tested: bool) -> Compiled:
        proved.append(key.name)
        return await usual(key, data, is_tested)

    monkeypatch.setattr(worlds, "compile_now", counting)

    async def scene(world: World) -> None:
        await two_nodes(world)
        theirs, mine = PIN.format(node="n1"), PIN.format(node="n2")
        await config_map(world, "pin", theirs)
        serves(world, theirs)
        for number in range(MANY):
            await config_map(world, f"a{number:03}", mine, seconds=0)
        await asyncio.sleep(5)
        assert {(await status(world, f"a{number:03}"))["state"] for number in range(MANY)} == {"rejected"}
        for _ in range(MANY):
            for label in (None, "true"):
                labels = {"labels": {"policyengine.io/policy": label}}
                await world.call("PATCH", f"{MAPS}/a000", {"metadata": labels}, MERGE)
                await asyncio.sleep(0.1)
        assert proved.count("a000") < 10, "12 s: 3 at once, then after 1, 2, 4, 8 s"
        # After a restart, too, the one that served does so before the others are looked at.
        await world.replicas[-1].kill()
        world.start("scheduler-b")
        await asyncio.sleep(4)
        await world.pod("p", scheduler="pinned")
        await world.settle(5)
        assert (await world.where())["p"] == "n1"

    played(scene)


def test_a_page_of_policies_of_any_size_fits_into_memory() -> None:
    assert all(kind.page * 1.5 <= 32 for kind in (CONFIG_MAPS, SCHEDULING_POLICIES)), "MiB"
