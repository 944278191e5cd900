"""The incremental answer is a fresh one's."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import make_node
from tests.plugins.devices.devices import (
    World,
    allocated,
    claim,
    exactly,
    resource_slice,
    using,
)

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


@settings(max_examples=40)
@given(_steps)
def test_the_incremental_answer_is_the_fresh_one(history: Any) -> None:
    world = World(claim(), claim(name="shared"), resource_slice("g0", "g1", node="n0", name="s0"))
    pod = using("c").info()
    for version, (what, place, amount) in enumerate(history, start=2):
        step(world, what, place, amount, version)
        fresh = World(nodes=0)
        fresh.view = world.view
        assert world.evaluate(pod) == fresh.evaluate(pod), (what, place, amount)
