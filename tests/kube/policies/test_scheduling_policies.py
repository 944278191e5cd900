"""SchedulingPolicies on a whole scheduler: who serves, what their status says, and what strangers do to it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster.objects import decode
from policyengine.cluster.workload_objects import SchedulingPolicy
from policyengine.kube.policies.compiling import MOST_FINDINGS
from policyengine.kube.policies.params_file import PARAMS_FIELD, params_of
from policyengine.kube.policies.reports import CORRECTION
from policyengine.kube.policies.scheduling_policy import SchedulingPolicySource
from policyengine.kube.watching.absent_kinds import ABSENT_FOR
from policyengine.kube.watching.reflector import REFUSED_FOR
from policyengine.simulator.api_server import statuses
from tests.faults.objects import CRD, CRDS, MERGE, POLICIES
from tests.faults.world import World, play
from tests.faulty_server import effects
from tests.kube.policies.reload_scenes import (
    EVENTS,
    PIN,
    Scene,
    change,
    config_map,
    events,
    played,
    serves,
    two_nodes,
    written,
)
from tests.kube.policies.reload_scenes import status as annotated

KIND = "SchedulingPolicy"
JSON = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
N1, N2 = PIN.format(node="n1"), PIN.format(node="n2")
FAILING = N1.replace(
    "}\n}", '}\n  test "t" {\n    given node "a" {}\n    given pod "p" {}\n    expect "p" on "a"\n  }\n}'
)


def served(scene: Scene) -> Any:
    """The scene as a test, on a server with the CustomResourceDefinition."""

    async def whole(world: World) -> None:
        await world.call("POST", CRDS, CRD)
        await two_nodes(world)
        await scene(world)

    def test() -> None:
        played(whole)

    test.__name__, test.__doc__ = scene.__name__, scene.__doc__
    return test


def spec(text: str, **more: Any) -> dict[str, Any]:
    return {"policies": {"a.policy": text}, **more}


async def policy(world: World, name: str, text: str, seconds: float = 2.0, **more: Any) -> None:
    item = {"apiVersion": "policyengine.io/v1alpha1", "kind": "SchedulingPolicy", "metadata": {"name": name}}
    await world.call("POST", POLICIES, {**item, "spec": spec(text, **more)})
    await asyncio.sleep(seconds)


async def respec(world: World, name: str, seconds: float = 2.0, **fields: Any) -> None:
    await world.call("PATCH", f"{POLICIES}/{name}", {"spec": fields}, MERGE)
    await asyncio.sleep(seconds)


async def status(world: World, name: str) -> dict[str, Any]:
    found = await world.call("GET", f"{POLICIES}/{name}")
    told: dict[str, Any] = found["status"]
    rows = told["conditions"]
    assert {row["observedGeneration"] for row in rows} == {told["observedGeneration"]}
    told["is newest"] = told["observedGeneration"] == found["metadata"]["generation"]
    return told


async def conditions(world: World, name: str) -> dict[str, tuple[str, str]]:
    return {row["type"]: (row["status"], row["reason"]) for row in (await status(world, name))["conditions"]}


@served
async def test_one_that_is_good_serves_and_one_with_errors_says_where_while_the_last_good_serves(world: World) -> None:
    await policy(world, "pin", N1)
    found = await status(world, "pin")
    assert await conditions(world, "pin") == {
        "Accepted": ("True", "Accepted"),
        "Tested": ("True", "TestsPassed"),
        "Serving": ("True", "Serving"),
        "Ready": ("True", "Serving"),
    }
    assert (found["hash"], found["schedulerNames"], found["is newest"]) == (world.hash_of(N1), ["pinned"], True)
    since = found["conditions"][0]["lastTransitionTime"]
    await respec(world, "pin", policies={"a.policy": N1.replace("require", "requires") + "policy {"})
    found = await status(world, "pin")
    assert await conditions(world, "pin") == {
        "Accepted": ("False", "Invalid"),
        "Tested": ("Unknown", "Invalid"),
        "Serving": ("True", "LastGood"),
        "Ready": ("False", "Invalid"),
        "Stalled": ("True", "Invalid"),
    }
    assert found["conditions"][2]["lastTransitionTime"] == since, "it serves on"
    assert (found["findingCount"], found["is newest"]) == (len(found["findings"]), True)
    first = found["findings"][0]
    assert (first["file"], first["line"], first["column"]) == ("a.policy", 3, 20)
    assert first["code"].startswith("PE") and first["message"] in found["conditions"][0]["message"]
    assert [one[1] for one in await told_of(world, "pin")] == ["PolicyAccepted", "PolicyRejected"]
    serves(world, N1)
    await world.pod("p", scheduler="pinned")
    await world.settle(10)
    assert (await world.where())["p"] == "n1"


async def told_of(world: World, name: str) -> list[tuple[str, str]]:
    about = {"kind": KIND, "apiVersion": "policyengine.io/v1alpha1", "name": name}
    items = [item for item in (await world.call("GET", EVENTS))["items"] if about.items() <= item["regarding"].items()]
    return [(item["type"], item["reason"]) for item in sorted(items, key=lambda item: str(item["eventTime"]))]


@served
async def test_a_failing_test_and_wrong_params_are_told_apart(world: World) -> None:
    await policy(world, "pin", FAILING)
    assert (await conditions(world, "pin"))["Tested"] == ("False", "TestsFailed")
    assert (await status(world, "pin"))["findings"][0]["code"] == "PE2950"
    await respec(world, "pin", policies={"a.policy": N1}, params={"most": 3})
    found = await status(world, "pin")
    assert found["findings"] == [{"file": "spec.params", "code": "PE2901", "message": found["findings"][0]["message"]}]
    text = N1.replace('scheduler "pinned"', 'scheduler "pinned"\n  param most: int = 1\n  param room: cpu = 1')
    await respec(world, "pin", policies={"a.policy": text}, params={"most": 3, "room": "250m"})
    found = await status(world, "pin")
    assert (await conditions(world, "pin"))["Ready"] == ("True", "Serving")
    assert found["hash"] != world.hash_of(text), "params are part of it"


@served
async def test_both_forms_of_one_scheduler_name_and_of_one_name_are_two_objects_and_the_older_serves(
    world: World,
) -> None:
    await config_map(world, "pin", N1)
    await policy(world, "pin", N2)
    found = await status(world, "pin")
    assert (await conditions(world, "pin"))["Accepted"] == ("False", "Conflict")
    assert found["conditions"][0]["message"] == (
        "scheduler `pinned` is served by the older ConfigMap `kube-system/pin`"
    )
    serves(world, N1)
    await world.pod("p", scheduler="pinned")
    await asyncio.sleep(5)
    assert (await world.where())["p"] == "n1"
    await world.call("DELETE", "/api/v1/namespaces/kube-system/configmaps/pin")
    await asyncio.sleep(2)
    assert (await conditions(world, "pin"))["Ready"] == ("True", "Serving")
    await config_map(world, "pin", N1)
    assert (await annotated(world, "pin"))["message"] == (
        "scheduler `pinned` is served by the older SchedulingPolicy `kube-system/pin`"
    )
    assert [one[1] for one in await told_of(world, "pin")] == ["PolicyRejected", "PolicyAccepted"]
    serves(world, N2)
    await world.pod("q", scheduler="pinned")
    await world.settle(10)
    assert (await world.where())["q"] == "n2"


@served
async def test_a_candidate_is_tried_and_suspended_and_the_status_outlives_a_restart(world: World) -> None:
    await config_map(world, "pin", N1)
    budget = {"divergence": "10%", "least": 3, "window": "10m"}
    await policy(world, "next", N2, mode="Shadow", shadow={"sample": 100}, budget=budget)
    assert (await conditions(world, "next"))["Serving"] == ("False", "Shadow")
    assert (await conditions(world, "next"))["Ready"] == ("True", "Shadow")
    serves(world, N1)
    for number in range(5):
        await world.pod(f"p{number}", "100m", scheduler="pinned")
    await asyncio.sleep(5)
    found = await status(world, "next")
    assert (await conditions(world, "next"))["Serving"] == ("False", "Suspended")
    assert (await conditions(world, "next"))["Stalled"] == ("True", "Suspended")
    assert found["rollout"]["settings"]["mode"] == "shadow" and found["rollout"]["compared"] >= 3
    await world.replicas[0].kill()
    world.replicas.clear()
    before = len(written(world, KIND, "status"))
    world.start("scheduler-b")
    await asyncio.sleep(10)
    assert (await conditions(world, "next"))["Stalled"] == ("True", "Suspended")
    assert len(written(world, KIND, "status")) == before, "what is said already is not written again"
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    await respec(world, "next", mode="Canary", shadow=None, budget=None, canary={"namespaceSelector": selector})
    assert (await conditions(world, "next"))["Serving"] == ("True", "Canary")
    serves(world, N2)
    await world.pod("q", scheduler="pinned")
    await asyncio.sleep(5)
    assert (await world.where())["q"] == "n2"
    await world.settle(40)


@served
async def test_a_stranger_who_edits_a_status_wins_nothing_and_keeps_nobody_busy(world: World) -> None:
    await policy(world, "pin", N1.replace("require", "requires"))
    good = await status(world, "pin")
    forged = [{**row, "status": "True", "reason": "Forged"} for row in good["conditions"]]
    await world.call("PATCH", f"{POLICIES}/pin/status", {"status": {"conditions": forged, "hash": "x"}}, MERGE)
    await asyncio.sleep(CORRECTION + 2)
    assert (await conditions(world, "pin"))["Accepted"] == ("False", "Invalid")
    before = len(written(world, KIND, "status"))
    for number in range(300):
        await world.call("PATCH", f"{POLICIES}/pin/status", {"status": {"hash": str(number)}}, MERGE)
        await asyncio.sleep(0.1)
    await asyncio.sleep(CORRECTION + 2)
    assert "hash" not in await status(world, "pin") or (await status(world, "pin"))["hash"] == ""
    assert len(written(world, KIND, "status")) - before - 300 <= 3
    for value in (None, [], [3], [{"type": "Accepted"}], [{"type": 3}]):
        body = {"status": {"conditions": value, "rollout": {"settings": 3}, "observedGeneration": 1}}
        await world.call("PATCH", f"{POLICIES}/pin/status", body, MERGE)
        await asyncio.sleep(1)
    await asyncio.sleep(CORRECTION + 2)
    assert (await conditions(world, "pin"))["Accepted"] == ("False", "Invalid")
    await respec(world, "pin", policies={"a.policy": N1})
    assert (await conditions(world, "pin"))["Ready"] == ("True", "Serving")
    await world.settle(5)


def test_of_two_replicas_the_leader_writes_and_its_successor_finds_nothing_to_say() -> None:
    async def scene(world: World) -> None:
        await world.call("POST", CRDS, CRD)
        await two_nodes(world)
        await asyncio.sleep(3)
        world.start("scheduler-b")
        await asyncio.sleep(3)
        await policy(world, "pin", N1, seconds=5)
        assert len(written(world, KIND, "status")) == 1
        found = await status(world, "pin")
        await world.replicas[0].kill()
        await asyncio.sleep(60)
        assert world.replicas[1].leads and await status(world, "pin") == found
        assert len(written(world, KIND, "status")) == 1
        serves(world, N1)
        await world.pod("p", scheduler="pinned")
        await world.settle(10)

    played(scene, elects=True)


@served
async def test_a_spec_of_a_mebibyte_a_long_name_and_a_thousand_findings_fit(world: World) -> None:
    name = "n" * 253
    await policy(world, name, "// " + "x" * ((1 << 20) - 400) + "\n" + N1)
    assert (await conditions(world, name))["Ready"] == ("True", "Serving")
    assert await told_of(world, name) == [("Normal", "PolicyAccepted")]
    many = "\n".join(f'  filter "f{number}" {{ require nod{number}.name == "" }}' for number in range(1000))
    await policy(world, "wrong", 'policy "w" {\n  scheduler "w"\n' + many + "\n}")
    found = await status(world, "wrong")
    assert len(found["findings"]) == MOST_FINDINGS and found["findingCount"] > MOST_FINDINGS
    assert found["conditions"][0]["message"].endswith(f"; {found['findingCount'] - 1} more")
    assert len(str(found)) < 10_000


@served
async def test_what_is_nested_without_end_is_rejected_and_ends_nothing(world: World) -> None:
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    await policy(world, "deep", N1, params={"most": deep})
    found = await status(world, "deep")
    assert found["conditions"][0]["message"] == "`spec.params` is nested too deeply"
    for _ in range(400):
        deep = {"settings": deep}
    serving = {"type": "Serving", "status": "False", "reason": "Suspended", "message": "", "lastTransitionTime": None}
    body = {"status": {"rollout": {"settings": deep}, "conditions": [serving], "observedGeneration": 1}}
    await respec(world, "deep", params=None, mode="Shadow")
    await world.call("PATCH", f"{POLICIES}/deep/status", body, MERGE)
    await asyncio.sleep(CORRECTION + 2)
    assert (await conditions(world, "deep"))["Serving"] == ("False", "Waiting")


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=3))
def test_the_values_of_params_arrive_as_the_api_server_has_them(params: dict[str, Any]) -> None:
    source = SchedulingPolicySource(decode(SchedulingPolicy, {"metadata": {}, "spec": spec("", params=params)}))
    texts = {name: text for name, text in source.texts.items() if name == PARAMS_FIELD}
    found = {name: one.value for name, text in texts.items() for name, one in params_of(name, text).items()}
    assert found == params


@served
async def test_an_object_made_anew_under_its_name_is_judged_anew(world: World) -> None:
    await policy(world, "pin", N1)
    late = effects.Delay(5.0)
    world.faults.add(late, verb="patch", resource="schedulingpolicies", subresource="status", times=1)
    await respec(world, "pin", seconds=0.5, policies={"a.policy": N1[:30]})
    await world.call("DELETE", f"{POLICIES}/pin")
    await policy(world, "pin", N2, seconds=0.2)
    await respec(world, "pin", seconds=20, policies={"a.policy": N2 + "//\n"})
    assert (await conditions(world, "pin"))["Ready"] == ("True", "Serving")
    assert (await status(world, "pin"))["is newest"]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "SchedulingPolicies" in one.getMessage()]


def test_a_definition_may_come_later_and_go_while_a_policy_of_it_serves(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(world: World) -> None:
        await two_nodes(world)
        await config_map(world, "pin", N1)
        assert (await annotated(world, "pin"))["state"] == "accepted", "without the definition all is as before"
        await world.call("POST", CRDS, CRD)
        await policy(world, "other", N2.replace("pinned", "other"), seconds=1)
        assert (await conditions(world, "other"))["Ready"] == ("True", "Serving")
        await world.call("DELETE", f"{CRDS}/{CRD['metadata']['name']}")
        await asyncio.sleep(5)
        await world.pod("p", scheduler="other")
        await asyncio.sleep(ABSENT_FOR)
        assert (await world.where())["p"] == "", "its policies are gone, as if each had been deleted"
        await world.call("POST", CRDS, CRD)
        await policy(world, "other", N2.replace("pinned", "other"), seconds=1)
        assert (await world.where())["p"] == "n2"
        await change(world, "pin", N1 + "//\n")
        assert (await events(world, "pin"))[0][1] == "PolicyAccepted"

    with caplog.at_level(logging.INFO, "policyengine.kube.policies.reload"):
        objections, world = play(scene)
    assert not [one for one in objections if "other" not in one], world.timeline()
    absent = "SchedulingPolicies are not read: their CustomResourceDefinition is not in this cluster"
    assert lines(caplog) == [absent, absent], "one line each time it is missing"


def test_without_the_right_to_them_config_maps_serve_and_one_line_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(world: World) -> None:
        await world.call("POST", CRDS, CRD)
        refused = effects.Fail(statuses.ApiError(403, "Forbidden", "no right"))
        world.faults.add(refused, verb="list", resource="schedulingpolicies", times=5)
        await policy(world, "other", N2.replace("pinned", "other"), seconds=0)
        await two_nodes(world)
        await config_map(world, "pin", N1)
        serves(world, N1)
        await world.pod("p", scheduler="pinned")
        await asyncio.sleep(REFUSED_FOR * 5 + 10)
        assert (await world.where())["p"] == "n1"
        assert (await conditions(world, "other"))["Ready"] == ("True", "Serving"), "the right came"

    played(scene)
    assert len(lines(caplog)) == 1 and "no right" in lines(caplog)[0]
