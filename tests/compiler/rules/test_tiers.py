"""Tiers: no sum of what counts less outweighs one."""

from __future__ import annotations

from random import Random

import pytest

from policyengine.cluster.view import Snapshot
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile
from policyengine.language.diagnostics import Severity
from policyengine.policy_compiler import compile_policy, compile_text
from tests.builders import make_node, make_pod
from tests.compiler.worlds import PlainNode, World
from tests.scheduler.driver import Driver, binds


def scored(scores: str, *labels: dict[str, str]) -> list[list[int]]:
    """The whole points of each score on each node, and last the totals."""
    world = World([PlainNode(f"n{number}", labels=own) for number, own in enumerate(labels)])
    return _columns(compile_policy(f'policy "p" {{ base none {scores} }}'), world.snapshot())


def _columns(profile: Profile, snapshot: Snapshot) -> list[list[int]]:
    evaluator = Evaluator(profile)
    pod = make_pod("p").info()
    found = evaluator.score(pod, snapshot, evaluator.filter(pod, snapshot))
    return [*(share.scores.tolist() for share in found.shares), found.total.tolist()]


def by_label(name: str, how: str) -> str:
    return f'score "{name}" {how} = clamp(toInt(node.labels[?"{name}"]).orValue(0), 0, 100)'


@pytest.mark.parametrize("seed", range(40))
def test_totals_order_nodes_tier_by_tier_and_then_by_the_weighted_sum(seed: int) -> None:
    chance = Random(seed)
    hows = [chance.choice(("tier", f"weight {chance.choice((1, 7, 1000, 1_000_000))}")) for _ in range(5)]
    hows = [how if how != "tier" or hows[:at].count("tier") < 4 else "weight 1" for at, how in enumerate(hows)]
    labels = [{f"s{at}": str(chance.choice((0, 1, 50, 99, 100))) for at in range(5)} for _ in range(12)]
    *points, totals = scored(" ".join(by_label(f"s{at}", how) for at, how in enumerate(hows)), *labels)
    tiers = [column for column, how in zip(points, hows, strict=True) if how == "tier"]
    weighted = [
        sum(column[node] * int(how.split()[1]) for column, how in zip(points, hows, strict=True) if how != "tier")
        for node in range(12)
    ]
    keys = [(*(column[node] for column in tiers), weighted[node]) for node in range(12)]
    assert [keys[node] for node in sorted(range(12), key=totals.__getitem__)] == sorted(keys)
    assert len(set(totals)) == len(set(keys))


def test_plugins_of_the_base_count_less_than_a_tier_too() -> None:
    text = 'use NodeResourcesFit weight 1000000 score "first" tier = node.labels[?"a"].hasValue() ? 1 : 0'
    profile = compile_policy(f'policy "p" {{ {text} }}')
    world = World([PlainNode("n0", labels={"a": ""}, cpu=100), PlainNode("n1", cpu=64_000)])
    totals = _columns(profile, world.snapshot())[-1]
    assert totals[0] > totals[1]


def test_a_tier_of_an_overlay_comes_after_those_of_the_policy() -> None:
    profile = compile_policy(
        'policy "p" { base none score "a" tier = 1 } overlay "o" on "p" { score "b" tier = 1 score "c" weight 2 = 1 }'
    )
    assert {plugin.name: weight for plugin, weight in profile.scores} == {"c": 2, "b": 201, "a": 20_301}
    assert profile.tiers == {"a", "b"}


def test_weights_that_would_leave_64_bits_are_refused() -> None:
    tiers = " ".join(f'score "t{number}" tier = 1' for number in range(4))
    heavy = [f'score "s{number}" weight 1000000 = 1' for number in range(60)]
    result = compile_text(f'policy "p" {{ base none {tiers} {" ".join(heavy)} }}')
    assert [one.message for one in result.diagnostics if one.severity is Severity.ERROR] == [
        "tiers and weights come to more than 64 bits hold: write smaller weights, or fewer tiers"
    ]
    (profile,) = compile_text(f'policy "p" {{ base none {tiers} {" ".join(heavy[:50])} }}').profiles
    assert sum(weight for _, weight in profile.scores) * 100 * 16 < 2**63


def test_a_node_of_a_worse_tier_is_taken_when_nothing_else_fits() -> None:
    spot = 'score "on-demand" tier = node.labels[?"spot"].hasValue() ? 0 : 100'
    driver = Driver(compile_policy(f'policy "p" {{ scheduler "s" {spot} }}'))
    driver.see(make_node("big").capacity(cpu="64", memory="99Gi", pods="9").label("spot", ""))
    driver.see(make_node("small").capacity(cpu="1", memory="1Gi", pods="9"))
    driver.see(*(make_pod(name).uid(name).scheduler("s").req(cpu="1") for name in ("p", "q")))
    assert binds(driver.cycle()) == {"p": "small", "q": "big"}
