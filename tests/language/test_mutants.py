"""Mutants: one thing changed, well typed, in the order of the text, compiled like any policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from policyengine.framework.profile import Profile
from policyengine.language import ir
from policyengine.language.diagnostics import Source
from policyengine.language.ir.ir_walk import rebuilt
from policyengine.language.mutants import MOST, mutants
from policyengine.policy_compiler import checked, checked_files, compile_checked
from policyengine.trials.policy_test import TestedPolicy, in_file_tests, mutate

FOLDER = Path(__file__).resolve().parents[2] / "policies"


def policy_of(members: str) -> ir.Policy:
    policies, findings = checked(Source("x.policy", f'policy "p" {{ {members} }}'))
    assert not findings, findings
    return policies[0]


def changes(members: str) -> list[str]:
    return [mutant.change for mutant in mutants(policy_of(members))]


CASES = [
    ('filter "f" { require pod.priority < 5 }',
     ["`<` became `<=`", "`<` became `>=`", "`require` left out", "`5` became `6`"]),
    ('filter "f" when pod.name == "x" { require node.ready }',
     ["`==` became `!=`", "`when` left out", '`"x"` became `"x~"`', "`require` left out"]),
    ('filter "f" { require !node.ready }', ["`!` left out", "`require` left out"]),
    ('filter "f" { require node.ready && pod.priority > 0 }',
     ["`require` left out", "`&&` became `||`", "`>` became `>=`", "`>` became `<=`", "`0` became `1`"]),
    ('score "s" weight 2 = node.ready ? 100 : 0',
     ["weight 2 became 20", 'score "s" left out', "the branches of `?:` were swapped", "`100` became `101`",
      "`0` became `1`"]),
    ('score "s" weight 1 normalize max = node.podCount',
     ["weight 1 became 10", "`reverse` added", 'score "s" left out']),
    ("queue { order by pod.priority desc, pod.name }",
     ["`desc` became `asc`", "key left out", "`asc` became `desc`", "key left out"]),
    ('filter "f" { require pod.requests.memory + 1Gi <= node.free.memory }',
     ["`require` left out", "`<=` became `<`", "`<=` became `>`", "`+` became `-`", "`1Gi` became `2Gi`"]),
    ('filter "f" { require node.taints.all(t, t.key != "x") }',
     ["`require` left out", "`all` became `exists`", "`!=` became `==`", '`"x"` became `"x~"`']),
    ('filter "f" { require pod.name.matches("^a") }', ["`require` left out"]),
    ('gang "g" when pod.priority > 3 { key: "k" min: 2 timeout: 60s waits: 10s }',
     ["`>` became `>=`", "`>` became `<=`", "`3` became `4`", "`when` left out", '`"k"` became `"k~"`',
      "`2` became `3`", "`60s` became `120s`", "`10s` became `20s`", "`waits` left out", 'gang "g" left out']),
    ('quota "q" when pod.name == "x" { guarantee: {cpu: 2, memory: 1Gi} limit: {cpu: 4} borrow: pod.name != "y" }',
     ["`==` became `!=`", '`"x"` became `"x~"`', "`cpu` of `guarantee` left out", "`memory` of `guarantee` left out",
      "`cpu` of `limit` left out", "`cpu` of `limit` doubled", "`!=` became `==`", '`"y"` became `"y~"`',
      "`borrow` left out", 'quota "q" left out']),
    ('quota "q" by pod.labels[?"team"] when pod.priority > 0 { limit: {cpu: 4} }',
     ["`by` left out", '`"team"` became `"team~"`', "`>` became `>=`", "`>` became `<=`", "`0` became `1`",
      "`when` left out", "`cpu` of `limit` left out", "`cpu` of `limit` doubled", 'quota "q" left out']),
    ('quota "q" by pod.namespace { guarantee: {cpu: toQuantity(pod.namespaceAnnotations[?"cpu"], cpu).orValue(2)} }',
     ["`by` left out", "`cpu` of `guarantee` left out", '`"cpu"` became `"cpu~"`', "`2` became `4`",
      'quota "q" left out']),
    ('score "s" tier normalize max = node.podCount',
     ["`tier` became `weight 1`", "`reverse` added", 'score "s" left out']),
    ('permit "w" { until: pod.name == "x" timeout: 5s }',
     ["`==` became `!=`", '`"x"` became `"x~"`', "`5s` became `10s`", "`timeout` left out", 'permit "w" left out']),
    ('preempt when pod.uid == "x" { victims: victim.priority<3 order by victim.uid desc missing first maxVictims: 2 }',
     ["`==` became `!=`", '`"x"` became `"x~"`', "`when` left out", "`<` became `<=`", "`<` became `>=`",
      "`3` became `4`", "`victims` left out", "`desc` became `asc`", "`missing first` left out", "key left out",
      "`2` became `3`", "`maxVictims` left out"]),
    ('queue { fair by pod.namespace + "x" weight {"a": 2} backoff 1s .. 10s flush 60s }',
     ['`"x"` became `"x~"`', "`fair by` left out", "weight 2 of `a` became 20", "`1s` became `2s`",
      "`10s` became `20s`", "`60s` became `120s`"]),
    ('on reserve when node.ready log "to {pod.name + \'x\'}"',
     ["`when` left out", '`"to "` became `"to ~"`', '`"x"` became `"x~"`', "`on reserve` left out"]),
    ('bind { annotations: {"a/b": "is {node.ready ? 1 : 2}"} }',
     ['`"is "` became `"is ~"`', "the branches of `?:` were swapped", "`1` became `2`", "`2` became `3`",
      "annotation `a/b` left out"]),
    ('filter "f" { require node.ready else "{pod.name} on {pod.priority + 1}" }',
     ["`require` left out", '`" on "` became `" on ~"`', "`+` became `-`", "`1` became `2`"]),
    ('param n: int = 3 range [0, 3] param m: cpu = 500m param w: string = "a" values ["a", "b"] param b: bool = true',
     ["default `3` became `0`", "default `500m` became `1`", 'default `"a"` became `"b"`',
      "default `true` became `false`"]),
    ('param l: list(string) = ["a", "b"] param only: int = 3 range [3, 3] param x: double = 0.5',
     ["default `[a, b]` became `[a]`", "default `0.5` became `1`"]),
    ('use TaintToleration weight 3 use ImageLocality disable NodePorts disable NodeName',
     ["`use TaintToleration` left out", "weight 3 became 30", "`use ImageLocality` left out",
      "`disable NodePorts` left out", "`disable NodeName` left out"]),
    ('use NodeResourcesFit weight 0 { scoringStrategy: {type: "MostAllocated"}, ignoredResources: ["a.io/b"] }',
     ["`use NodeResourcesFit` left out", "argument `scoringStrategy` left out",
      "argument `ignoredResources` left out"]),
    ("", []),
]  # fmt: skip


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_what_is_changed(members: str, expected: list[str]) -> None:
    assert sorted(changes(members)) == sorted(expected)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.policy")), ids=lambda file: file.stem)
def test_every_mutant_compiles_and_differs_from_the_policy(file: Path) -> None:
    together = [file, *sorted((FOLDER / "lib").glob("*.policy"))]
    (policy,), _ = checked_files([Source(one.name, one.read_text(encoding="utf-8")) for one in together])
    found = mutants(policy)
    assert found
    for mutant in found:
        assert mutant.policy != policy, mutant.change
    for mutant in found[:: max(1, len(found) // 6)]:
        assert isinstance(compile_checked(mutant.policy), Profile), mutant.change
    places = [(mutant.file, mutant.span.start) for mutant in found]
    assert places == sorted(places)


def test_a_mutant_is_built_when_it_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    built = 0

    def counted(expr: ir.Expr, parts: Sequence[ir.Expr]) -> ir.Expr:
        nonlocal built
        built += 1
        return rebuilt(expr, parts)

    monkeypatch.setattr("policyengine.language.mutants.rebuilt", counted)
    items = ", ".join(f'"z{at}"' for at in range(3000))
    subject = subject_of(f'filter "f" {{ require pod.name in [{items}] }} {TEST}')
    assert len(mutants(subject[0].policy)) == 3001
    assert built == 0
    assert mutate(subject, most=3).tried == 3
    assert 0 < built <= 3 * 2


def test_the_mutants_of_a_large_policy_are_bounded() -> None:
    rows = ", ".join(f"[{', '.join('7' * 100)}]" for _ in range(110))
    assert len(changes(f'filter "f" {{ require [pod.priority] in [{rows}] }}')) == MOST == 10_000


TEST = 'test "t" { given node "a" { allocatable: {pods: 9} } given pod "p" { priority: 5 } expect "p" rejected }'


def subject_of(members: str) -> list[TestedPolicy]:
    policy = policy_of(members)
    return [TestedPolicy(policy, in_file_tests(policy))]


def test_survivors_are_what_no_test_notices() -> None:
    mutation = mutate(subject_of(f'filter "f" {{ require pod.priority < 5 }} {TEST}'))
    noticed = {"`<` became `<=`", "`<` became `>=`", "`require` left out", "`5` became `6`"}
    assert mutation.survivors == ()
    assert mutation.tried == mutation.possible == len(noticed)
    weak = TEST.replace("priority: 5", "priority: 7")
    mutation = mutate(subject_of(f'filter "f" {{ require pod.priority < 5 }} {weak}'))
    assert {mutant.change for mutant in mutation.survivors} == {"`<` became `<=`", "`5` became `6`"}


def test_tests_notice_mutants_of_annotations_and_log_lines() -> None:
    members = """bind { annotations: {"example.com/zone": "on {node.name}"} }
      on reserve when pod.priority > 4 log "{pod.name} goes" """
    given = """base none test "t" { given node "a" {} given pod "p" { priority: 5 } given pod "q" { priority: 4 }
      expect that placed("p") """
    blind = mutate(subject_of(f"{members} {given} }}"))
    assert len(blind.survivors) == blind.tried == blind.possible > 5
    sees = """&& annotation("p", "example.com/zone") == optional.of("on a")
      && logged("p", "p goes") && !logged("q", "q goes") }"""
    assert mutate(subject_of(f"{members} {given} {sees}")).survivors == ()


def test_tests_notice_mutants_of_texts_params_and_plugins() -> None:
    members = """param most: int = 1 use NodePorts disable NodeUnschedulable
      filter "f" { require node.podCount < most else "{node.name} is full" } """
    given = """test "t" { given node "a" { unschedulable: true allocatable: {pods: 9} }
      given pod "old" on "a" { containers: [{ports: [{hostPort: 80}]}] } given pod "p" {}
      expect "p" rejected on "a" by "f" """
    blind = mutate(subject_of(f"{members} {given} }}"))
    assert {mutant.change for mutant in blind.survivors} >= {'`" is full"` became `" is full~"`'}
    sees = """expect that reason("p", "a") == optional.of("a is full")
      given node "b" { unschedulable: true allocatable: {pods: 9} } expect "p" on "b"
      expect that !reason("p", "b").hasValue() }"""
    seen = mutate(subject_of(f"{members} {given} {sees}"))
    assert {mutant.change for mutant in seen.survivors} == {"`use NodePorts` left out"}  # the base has it


def test_what_a_plugin_refuses_is_no_change_to_notice() -> None:
    ratio = "requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}"
    members = f'use NodeResourcesFit {{ strategy: "RequestedToCapacityRatio", scoringStrategy: {{{ratio}}} }} {TEST}'
    mutation = mutate(subject_of(members.replace("rejected", 'on "a"')))
    assert (mutation.possible, mutation.tried) == (3, 1)
    assert [one.change for one in mutation.survivors] == ["`use NodeResourcesFit` left out"]


def test_the_number_of_mutants_is_bounded_and_the_choice_is_always_the_same() -> None:
    subject = subject_of(f'filter "f" {{ require pod.priority < 5 && pod.name != "q" }} {TEST}')
    one, other = mutate(subject, most=3), mutate(subject, most=3)
    assert one.tried == 3 < one.possible
    assert one == other


def test_the_score_is_the_share_noticed() -> None:
    mutation = mutate(subject_of(f'filter "f" {{ require pod.priority < 5 }} {TEST}'))
    assert mutation.score == pytest.approx(100 * (4 - len(mutation.survivors)) / 4)
