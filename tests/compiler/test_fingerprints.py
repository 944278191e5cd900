"""Which rules of a policy are others when its text is another."""

from __future__ import annotations

import pytest

from policyengine.catalogue import compile_files, compile_policy
from policyengine.framework.profile import Profile
from policyengine.language.diagnostics import Source
from policyengine.scheduler.queue.policy_replacement import queue_changed, rules_changed

TEXT = """policy "p" {
  let team = pod.labels[?"team"].orValue("")
  param most: int = 3
  queue { order by pod.priority desc }
  filter "own" { require node.name == team }
  filter "few" { require node.podCount < most }
  score "taste" weight 2 = node.podCount > 0 ? 1 : 0
  gang "crew" when team != "" { key: team min: 2 timeout: 30s }
  test "one" {
    given node "n" { allocatable: {cpu: 4, memory: 8Gi, pods: 9}, labels: {"a": "b"} }
    given pod "p" { labels: {"team": "n"} }
    expect "p" on "n"
  }
}
"""
PLUGIN = "NodeResourcesFit"


def changed(before: Profile, after: Profile) -> set[str]:
    return {name for name in ("own", "few", PLUGIN) if rules_changed(before, after, frozenset({name}))}


@pytest.mark.parametrize(
    ("old", "new", "names", "queue"),
    [
        ("node.podCount < most", "node.podCount <= most", {"few"}, False),
        ("node.podCount < most", "node.podCount   <\n most", set(), False),
        ('  filter "few" { require node.podCount < most }\n', "", {"few"}, False),
        ("weight 2", "weight 3", set(), False),
        ('test "one"', 'test "another"', set(), False),
        ("most: int = 3", "most: int = 4", {"own", "few", PLUGIN}, True),
        ('orValue("")', 'orValue("x")', {"own", "few", PLUGIN}, True),
        ("priority desc", "priority asc", {"own", "few", PLUGIN}, True),
        ("min: 2", "min: 3", {"own", "few", PLUGIN}, True),
        ("  queue", f'  use {PLUGIN} {{ ignoredResources: ["a.b/c"] }}\n  queue', {"own", "few", PLUGIN}, True),
    ],
)
def test_a_rule_is_another_where_its_text_or_what_all_share_is(
    old: str, new: str, names: set[str], queue: bool
) -> None:
    assert old in TEXT
    before, after = compile_policy(TEXT), compile_policy(TEXT.replace(old, new))
    assert changed(before, after) == names == changed(after, before)
    assert queue_changed(before, after) is queue


def test_values_of_params_from_outside_count() -> None:
    assert changed(compile_policy(TEXT), compile_policy(TEXT, {"most": 5})) == {"own", "few", PLUGIN}


def test_a_policy_that_imports_is_another_whole() -> None:
    def compiled(text: str) -> Profile:
        library = Source("lib.policy", 'library "lib" { param spare: int = 1 }')
        result = compile_files([Source("p.policy", 'import "lib"\n' + text), library])
        assert not result.failed, result.diagnostics
        return result.profiles[0]

    assert changed(compiled(TEXT), compiled(TEXT)) == set()
    after = compiled(TEXT.replace("node.podCount < most", "node.podCount < 2"))
    assert changed(compiled(TEXT), after) == {"own", "few", PLUGIN}


def test_where_nobody_has_said_the_plugins_themselves_are_compared() -> None:
    from policyengine.plugins.registry import default_profile

    assert queue_changed(default_profile(), default_profile())
    assert not rules_changed(default_profile(), compile_policy(TEXT), frozenset({"NodeName"}))
