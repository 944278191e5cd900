"""A policy whose own tests fail is not loaded: the status names the test and the line."""

from __future__ import annotations

from policyengine.kube.policies.compiling import compiled

GIVEN = 'given node "a" { allocatable: {cpu: 4, pods: 9} }\n    given pod "p" {}'
TEXT = f"""policy "x" {{
  param open: bool = true
  filter "door" {{ require open && node.ready }}
  test "the door" {{
    {GIVEN}
    expect "p" on "a"
  }}
}}
"""


def test_a_policy_that_passes_its_tests_is_loaded() -> None:
    assert [profile.name for profile in compiled({"x.policy": TEXT}).profiles] == ["x"]


def test_one_that_fails_them_is_rejected_with_the_test_and_its_line() -> None:
    found = compiled({"x.policy": TEXT.replace("open && node.ready", "!open && node.ready")})
    assert found.profiles == ()
    assert found.problem is not None
    assert (found.problem.line, found.problem.column) == (7, 5)
    assert found.problem.message == (
        "test `the door` of policy `x` fails: expected `p` on `a`, but it fits nowhere [PE2950]"
    )


def test_values_of_params_from_outside_are_no_reason_to_refuse_it() -> None:
    found = compiled({"x.policy": TEXT, "params.yaml": "open: false\n"})
    assert [profile.name for profile in found.profiles] == ["x"]
