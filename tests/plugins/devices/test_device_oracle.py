"""Counters, shares, taints, access for admins, binding conditions, alternatives: held against a naive search.

Two nodes with pools that look alike, of which others hold different devices.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.device_objects import ResourceClaim, ResourceSlice
from tests.plugins.devices.devices import (
    CANNOT,
    DRIVER,
    World,
    cel,
    claim,
    exactly,
    first_of,
    resource_slice,
    using,
)
from tests.plugins.devices.naive_devices import Json, NaiveNode

few = st.integers(1, 4)
policies = st.one_of(
    st.none(),
    st.fixed_dictionaries({"default": few}),
    st.just({"default": 1, "validValues": [1, 3, 4]}),
    st.builds(lambda step, most: {"default": 1, "validRange": {"min": 1, "step": step, "max": most}}, few, few),
    st.just({"default": 2, "validRange": {"min": 2}}),
)


@st.composite
def devices(draw: st.DrawFn, name: str) -> Json:
    one: Json = {"name": name, "attributes": {"size": draw(st.integers(0, 1))}, "capacity": {}}
    if draw(st.booleans()):
        capacity: Json = {"value": draw(st.integers(1, 6))}
        policy = draw(policies)
        one |= {"shared": True, "capacity": {"memory": capacity | ({"policy": policy} if policy else {})}}
    if draw(st.booleans()):
        one["draws"] = {"slots": draw(st.integers(1, 3))}
    if draw(st.integers(0, 3)) == 0:
        one["taints"] = [draw(st.sampled_from(("NoSchedule", "NoExecute", "None")))]
    if draw(st.integers(0, 4)) == 0:
        one["bindingConditions"] = ["ready"]
    return one


@st.composite
def pools(draw: st.DrawFn) -> list[Json]:
    """The pools that each node has."""
    found = []
    for name in "ab"[: draw(st.integers(1, 2))]:
        here = [draw(devices(f"{name}{number}")) for number in range(draw(st.integers(1, 4)))]
        found.append({"name": name, "devices": here, "counters": {"slots": draw(st.integers(0, 5))}})
    return found


@st.composite
def ways(draw: st.DrawFn) -> Json:
    way: Json = {}
    if draw(st.integers(0, 4)) == 0:
        way["allocationMode"] = "All"
    else:
        way["count"] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        way["selectors"] = [("size", draw(st.integers(0, 1)))]
    if draw(st.integers(0, 2)) == 0:
        way["capacity"] = {draw(st.sampled_from(("memory", "memory", "memory", "none"))): draw(few)}
    if draw(st.booleans()):
        way["tolerates"] = True
    return way


@st.composite
def requests(draw: st.DrawFn, name: str) -> Json:
    if draw(st.integers(0, 2)) == 0:
        alternatives = draw(st.lists(ways(), min_size=1, max_size=2))
        return {"name": name, "ways": [{"name": f"a{at}", **way} for at, way in enumerate(alternatives)]}
    return {"name": name, **draw(ways()), "adminAccess": draw(st.integers(0, 3)) == 0}


@st.composite
def held(draw: st.DrawFn, of: list[Json]) -> NaiveNode:
    """A node, and what others hold of its pools."""
    node = NaiveNode(of)
    for pool in of:
        for one in pool["devices"]:
            if draw(st.integers(0, 2)):
                continue
            if one.get("shared"):
                node.shares.append((pool["name"], one["name"], {"memory": draw(few)}))
            else:
                node.held.add((pool["name"], one["name"]))
    return node


# --- as API objects ---------------------------------------------------------------------------------------


def slices(node: str, pool: Json) -> list[ResourceSlice]:
    name = f"{node}-{pool['name']}"
    found = [api_device(one) for one in pool["devices"]]
    if not any("draws" in one for one in pool["devices"]):
        return [resource_slice(*found, node=node, pool=name)]
    counters = {counter: {"value": amount} for counter, amount in pool["counters"].items()}
    card = {"name": "card", "counters": counters}
    return [
        resource_slice(*found, node=node, pool=name, name=f"{name}-1", count=2),
        resource_slice(node=node, pool=name, name=f"{name}-0", count=2, sharedCounters=[card]),
    ]


def api_device(one: Json) -> Json:
    made: Json = {
        "name": one["name"],
        "attributes": {name: {"int": value} for name, value in one["attributes"].items()},
    }
    if one.get("shared"):
        made["allowMultipleAllocations"] = True
    made["capacity"] = {
        name: {"value": capacity["value"], **({"requestPolicy": capacity["policy"]} if "policy" in capacity else {})}
        for name, capacity in one["capacity"].items()
    }
    if "draws" in one:
        counters = {name: {"value": amount} for name, amount in one["draws"].items()}
        made["consumesCounters"] = [{"counterSet": "card", "counters": counters}]
    made["taints"] = [{"key": "t", "effect": effect} for effect in one.get("taints", ())]
    made["bindingConditions"] = one.get("bindingConditions", [])
    return made


def api_way(way: Json) -> Json:
    made: Json = {key: way[key] for key in ("name", "allocationMode", "count", "adminAccess") if key in way}
    made["selectors"] = [
        cel(f'device.attributes["{DRIVER}"].{name} == {value}') for name, value in way.get("selectors", ())
    ]
    if "capacity" in way:
        made["capacity"] = {"requests": way["capacity"]}
    if way.get("tolerates"):
        made["tolerations"] = [{"operator": "Exists"}]
    return made


def api_request(request: Json) -> Json:
    if "ways" in request:
        return first_of(*[api_way(way) for way in request["ways"]], name=request["name"])
    made = api_way(request)
    made.pop("name")
    return exactly(request["name"], **made)


def other(node: str, of: NaiveNode) -> ResourceClaim:
    """Somebody's claim that holds what is held."""
    results: list[Json] = []
    for pool, name in sorted(of.held):
        results.append({"request": "r", "driver": DRIVER, "pool": f"{node}-{pool}", "device": name})
    for number, (pool, name, consumed) in enumerate(of.shares):
        share = {"shareID": str(number), "consumedCapacity": consumed}
        results.append({"request": "r", "driver": DRIVER, "pool": f"{node}-{pool}", "device": name, **share})
    return claim(name=f"other-{node}", status={"allocation": {"devices": {"results": results}}})


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[NaiveNode], list[list[Json]]]:
    of = draw(pools())
    nodes = [draw(held(of)), draw(held(of))]
    claims = [
        [draw(requests(f"r{number}")) for number in range(draw(st.integers(1, 2)))]
        for _ in range(draw(st.integers(1, 2)))
    ]
    return nodes, claims


@settings(max_examples=200)
@given(worlds())
def test_the_first_allocation_is_the_one_that_trying_everything_finds(
    world_of: tuple[list[NaiveNode], list[list[Json]]],
) -> None:
    nodes, wanted = world_of
    world = World()
    for number, node in enumerate(nodes):
        world.see(*[one for pool in node.pools for one in slices(f"n{number}", pool)], other(f"n{number}", node))
    names = [f"c{number}" for number in range(len(wanted))]
    for name, one in zip(names, wanted, strict=True):
        world.see(claim(*map(api_request, one), name=name))
    answer = world.evaluate(using(*names))
    assert isinstance(answer, dict)
    for number, node in enumerate(nodes):
        expected = node.first(wanted)
        assert answer[f"n{number}"] == (CANNOT if expected is None else "")
        if expected is not None:
            pod = using(*names).uid(f"p{number}").info()
            taken = world.reserve(f"n{number}", pod)
            assert taken == [[(request, name) for request, _, name in one] for one in expected]
            world.plugin.unreserve(pod, "")
