"""Which rule made the difference: the new policy with one change undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyengine.plan.by_rule import changes
from policyengine.plan.comparison import Effect, compared
from policyengine.plan.rerun import rerun
from policyengine.policy_compiler import compile_policy
from tests.plan.test_plan import recorded

OLD = """policy "p" { scheduler "s" base filters
  param most: int = 9
  let few = node.podCount < most
  filter "few" { require few else "enough" }
  filter "gone" { require node.name != "n-1" else "not there" }
  score "least" weight 9 = 100 * (1.0 - ratio(node.used.cpu, node.allocatable.cpu))
}"""
NEW = """policy "p" { scheduler "s" base filters
  param most: int = 2
  let few =   node.podCount < most
  filter "few" {
    require few else "enough" // a comment is no change
  }
  filter "new" { require pod.name != "p-0" else "not this one" }
  score "least" weight 9 = 100 * (1.0 - ratio(node.used.cpu, node.allocatable.cpu))
}"""
SCENARIO = {
    "duration": "10min",
    "policies": [{"text": OLD}],
    "nodes": [{"name": "n", "count": 2, "allocatable": {"cpu": 8}}],
    "pods": [{"name": "p", "count": 6, "requests": {"cpu": 1}}],
}


def undone(old: str, new: str) -> list[tuple[str, str]]:
    return [(one.rule, one.how) for one in changes([compile_policy(old)], [compile_policy(new)])]


def test_a_change_is_undone_by_the_rule_s_name() -> None:
    assert undone(OLD, NEW) == [("few", "as before"), ("new", "left out"), ("gone", "put back")]


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        OLD.replace("\n", "\n\n"),
        OLD.replace("param most: int = 9", "param most: int = 9\n param unused: int = 1"),
        OLD.replace("require few", "require node.podCount < most"),
    ],
)
def test_another_way_of_writing_is_no_change(new: str) -> None:
    changed = [one for one in undone(OLD, new) if "few" not in one]
    assert changed == []


@pytest.mark.parametrize(
    ("member", "rule", "how"),
    [
        ("queue { order by pod.priority }", "the queue", "as before"),
        ("queue { flush 1min }", "the queue", "as before"),
        ("gang \"g\" { key: pod.name min: 2 timeout: 1min }", "the queue", "as before"),
        ("preempt { maxVictims: 1 }", "preempt", "left out"),
        ('quota "q" when pod.priority == 0 { limit: {cpu: 1000m} }', "q", "left out"),
        ("use ImageLocality weight 3", "ImageLocality", "left out"),
        ("disable NodePorts", "NodePorts", "put back"),
        ('score "least-2" tier = 1', "least-2", "left out"),
    ],
)  # fmt: skip
def test_each_member_that_decides_is_a_change(member: str, rule: str, how: str) -> None:
    assert undone(OLD, OLD[:-1] + member + "}") == [(rule, how)]


def test_with_everything_undone_in_turn_the_old_policy_is_back() -> None:
    """Undoing one change after the other leads to a policy that differs in nothing."""
    old, new = compile_policy(OLD), compile_policy(NEW)
    filters, scores = {one.name for one in old.filters}, [one.name for one, _ in old.scores]
    for rule in ("few", "new", "gone"):
        new = next(one for one in changes([old], [new]) if one.rule == rule).profiles[0]
    assert {one.name for one in new.filters} == filters
    assert [one.name for one, _ in new.scores] == scores


def test_a_tier_outweighs_what_is_put_back() -> None:
    heavy = OLD.replace("weight 9", "weight 90")
    tiered = OLD.replace('score "least" weight 9', 'score "first" tier')
    one = next(one for one in changes([compile_policy(heavy)], [compile_policy(tiered)]) if one.rule == "least")
    weights = {plugin.name: weight for plugin, weight in one.profiles[0].scores}
    assert weights == {"first": 9001, "least": 90}


def test_the_effect_of_a_rule_is_what_goes_without_it(tmp_path: Path) -> None:
    history = recorded(SCENARIO, tmp_path)
    old, new = compile_policy(OLD), compile_policy(NEW)
    run = rerun(history, [new])
    found = {
        one.rule: Effect(one.rule, one.how, compared(rerun(history, one.profiles), run))
        for one in changes([old], [new])
    }
    waiting = {rule: (one.comparison.old["waiting"], one.comparison.new["waiting"]) for rule, one in found.items()}
    assert waiting == {"few": (1, 2), "new": (2, 2), "gone": (4, 2)}
    assert found["gone"].pods == 3, "two are placed by it, and one stands elsewhere"
    assert found["gone"].json["newlyPlaced"] == 2
    assert found["gone"].json["without"]["waiting"] == 4
