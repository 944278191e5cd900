"""The search against a naive one that tries every assignment, and the incremental answer against a fresh one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.device_objects import DeviceClass, ResourceClaim
from tests.builders import make_node
from tests.plugins.devices.devices import (
    World,
    allocated,
    cel,
    claim,
    device,
    device_class,
    exactly,
    first_of,
    resource_slice,
    using,
)

MODELS, NUMAS = ("a", "b"), (0, 1)


@st.composite
def devices(draw: st.DrawFn) -> list[Any]:
    count = draw(st.integers(0, 5))
    made: list[Any] = []
    for place in range(count):
        one = device(f"d{place}", f"{draw(st.integers(1, 3))}Gi", model=draw(st.sampled_from(MODELS)))
        if draw(st.booleans()):
            one["attributes"]["numa"] = {"int": draw(st.sampled_from(NUMAS))}
        if draw(st.integers(0, 4)) == 0:
            one["taints"] = [{"key": "t", "effect": draw(st.sampled_from(("NoSchedule", "NoExecute", "None")))}]
        made.append(one)
    return made


def is_model(name: str) -> str:
    return f'device.attributes["gpu.example"].model == "{name}"'


@st.composite
def ways(draw: st.DrawFn) -> Any:
    way: dict[str, Any] = {}
    if draw(st.integers(0, 5)) == 0:
        way["allocationMode"] = "All"
    else:
        way["count"] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        way["selectors"] = [cel(is_model(draw(st.sampled_from(MODELS))))]
    if draw(st.booleans()):
        size = draw(st.integers(1, 3))
        way.setdefault("selectors", []).append(
            cel(f'device.capacity["gpu.example"].memory.compareTo(quantity("{size}Gi")) >= 0')
        )
    if draw(st.booleans()):
        way["tolerations"] = [{"operator": "Exists"}]
    return way


@st.composite
def claims(draw: st.DrawFn, name: str) -> ResourceClaim:
    requests = []
    for place in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            requests.append(exactly(f"r{place}", **draw(ways())))
        else:
            requests.append(first_of(*draw(st.lists(ways(), min_size=1, max_size=2)), name=f"r{place}"))
    counts = {one.get("count") for way in requests for one in way.get("firstAvailable", [way.get("exactly")])}
    kinds = st.sampled_from(("matchAttribute", "distinctAttribute")[: 2 if counts == {1} else 1])
    constraints = [{draw(kinds): "gpu.example/numa"}] if draw(st.booleans()) else []
    if constraints and draw(st.booleans()):
        constraints[0]["requests"] = [requests[0]["name"]]
    return claim(*requests, name=name, constraints=constraints)


# --- the naive search: all ways to choose, straight from the API's words ---------------------------------

Chosen = list[tuple[str, str, Any]]
"""(claim, request, device)"""


def selected(way: Any, of_class: Any, one: Any) -> bool:
    for selector in (*of_class.spec.selectors, *way.selectors):
        text = selector.cel.expression
        if "model" in text:
            if one["attributes"]["model"]["string"] != text.split('"')[-2]:
                return False
        elif int(one["capacity"]["memory"]["value"][:-2]) < int(text.split('"')[-2][:-2]):
            return False
    return True


def tolerated(way: Any, one: Any) -> bool:
    return bool(way.tolerations) or all(taint["effect"] == "None" for taint in one.get("taints", ()))


def choices(way: Any, of_class: Any, found: list[Any], taken: set[str]) -> Iterator[list[Any]]:
    matching = [one for one in found if selected(way, of_class, one)]
    usable = [one for one in matching if tolerated(way, one) and one["name"] not in taken]
    if way.allocation_mode == "All":
        if matching and len(usable) == len(matching):
            yield matching
        return
    yield from (list(some) for some in combinations(usable, way.count))


def holds(one_claim: ResourceClaim, chosen: Chosen) -> bool:
    for constraint in one_claim.spec.devices.constraints:
        values = [
            one["attributes"].get("numa", {}).get("int")
            for name, request, one in chosen
            if name == one_claim.metadata.name
            and (not constraint.requests or request.split("/")[0] in constraint.requests)
        ]
        if None in values:
            return False
        if constraint.match_attribute is not None and len(set(values)) > 1:
            return False
        if constraint.distinct_attribute is not None and len(set(values)) < len(values):
            return False
    return True


def first_solution(
    wanted: list[ResourceClaim], of_class: DeviceClass, found: list[Any], taken: set[str]
) -> Chosen | None:
    flat = [(one, request) for one in wanted for request in one.spec.devices.requests]

    def go(place: int, chosen: Chosen) -> Chosen | None:
        if place == len(flat):
            return chosen if all(holds(one, chosen) for one in wanted) else None
        one_claim, request = flat[place]
        alternatives = [(request.name, request.exactly)] if request.exactly else []
        alternatives += [(f"{request.name}/{sub.name}", sub) for sub in request.first_available]
        for name, way in alternatives:
            for some in choices(way, of_class, found, taken | {one["name"] for _, _, one in chosen}):
                more = [(one_claim.metadata.name, name, one) for one in some]
                answer = go(place + 1, [*chosen, *more])
                if answer is not None:
                    return answer
        return None

    return go(0, [])


@settings(max_examples=300, deadline=None)
@given(
    devices(),
    st.sampled_from([device_class(), device_class("gpu", is_model("a"))]),
    claims("c"),
    st.one_of(st.none(), claims("d")),
    st.sets(st.sampled_from(["d0", "d1", "d2"])),
)
def test_the_first_solution_is_found(
    found: list[Any], of_class: DeviceClass, one: ResourceClaim, two: Any, taken: set[str]
) -> None:
    wanted = [one] if two is None else [one, two]
    world = World(of_class, resource_slice(*found, node="n0"), *wanted, nodes=1)
    if taken:
        world.see(claim(name="other", status=allocated(*sorted(taken))))
    expected = first_solution(wanted, of_class, found, taken)
    pod = using(*[each.metadata.name for each in wanted]).info()
    answer = world.evaluate(pod)
    assert isinstance(answer, dict)
    if "would not be satisfied" in answer["n0"]:
        # All devices are wanted against a constraint: kube-scheduler calls that an error, even where a later
        # alternative would do.
        every = [request for each in wanted for request in each.spec.devices.requests]
        assert expected is None or any(request.first_available for request in every)
        return
    assert (answer["n0"] == "") == (expected is not None), answer
    if expected is not None:
        given_ = [pair for each in world.reserve(pod=pod) for pair in each]
        assert given_ == [(request, each["name"]) for _, request, each in expected]


# --- incremental against fresh ---------------------------------------------------------------------------

_steps = st.lists(
    st.tuples(
        st.sampled_from(("slice", "claim", "other", "reserve", "unreserve", "node", "gone")),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    max_size=12,
)


def step(world: World, what: str, place: int, amount: int, version: int) -> None:
    names = [f"g{number}" for number in range(amount)]
    if what == "slice":
        where: Any = {"node": f"n{place}", "name": f"s{place}"}
        world.see(resource_slice(*names, generation=version, version=version, **where))
    elif what == "claim":
        world.see(claim(exactly(count=max(1, amount)), version=version))
    elif what == "other":
        status = allocated("g0", node=f"n{place}") if amount else None
        world.see(claim(name="other", status=status, version=version))
    elif what == "node":
        world.view.add_or_update_node(make_node(f"n{place}").label("zone", f"z{amount}").version(version).build())
    elif what == "gone":
        world.view.remove_node(f"n{place}")
    elif what == "reserve":
        pod = using("shared", name="q").info()
        rows = world.fits(pod)
        if rows:
            world.plugin.reserve(pod, rows[0], world.view.snapshot())
    else:
        world.plugin.unreserve(using("shared", name="q").info(), "")


@settings(max_examples=40, deadline=None)
@given(_steps)
def test_the_incremental_answer_is_the_fresh_one(history: Any) -> None:
    world = World(claim(), claim(name="shared"), resource_slice("g0", "g1", node="n0", name="s0"))
    pod = using("c").info()
    for version, (what, place, amount) in enumerate(history, start=2):
        step(world, what, place, amount, version)
        fresh = World(nodes=0)
        fresh.view = world.view
        assert world.evaluate(pod) == fresh.evaluate(pod), (what, place, amount)
