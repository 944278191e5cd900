"""Mutants: one thing changed, well typed, in the order of the text, compiled like any policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyengine.framework.profile import Profile
from policyengine.language import ir
from policyengine.language.diagnostics import Source
from policyengine.language.mutants import mutants
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
        assert isinstance(compile_checked(mutant.policy), Profile), mutant.change
    places = [mutant.span.start for mutant in found]
    assert places == sorted(places)


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


def test_the_number_of_mutants_is_bounded_and_the_choice_is_always_the_same() -> None:
    subject = subject_of(f'filter "f" {{ require pod.priority < 5 && pod.name != "q" }} {TEST}')
    one, other = mutate(subject, most=3), mutate(subject, most=3)
    assert one.tried == 3 < one.possible
    assert one == other


def test_the_score_is_the_share_noticed() -> None:
    mutation = mutate(subject_of(f'filter "f" {{ require pod.priority < 5 }} {TEST}'))
    assert mutation.score == pytest.approx(100 * (4 - len(mutation.survivors)) / 4)
