"""A ConfigMap's keys become profiles together, or the first thing that is wrong with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.kube.policies import compiling
from policyengine.kube.policies.compiling import compiled
from policyengine.kube.policies.params_file import read_params
from policyengine.language.diagnostics import Severity
from policyengine.plain_yaml import PlainYamlError

SAFE = 'library "safe" { param spare: memory = 2Gi range [0Gi, 64Gi] }'
POLICY = """import "safe"
policy "p" {
  param zones: list(string) = ["a"]
  filter "f" { require node.free.memory >= safe.spare && node.zone in zones }
}
"""
OVERLAY = 'overlay "team" on "p" when pod.namespace == "team" { filter "ready" { require node.ready } }'
KEYS = {"a.policy": POLICY, "b.policy": SAFE, "c.policy": OVERLAY}


def test_the_keys_of_a_config_map_are_loaded_together() -> None:
    (profile,) = compiled(KEYS).profiles
    assert [rule.name for rule in profile.filters[-2:]] == ["f", "ready"]


def test_a_bug_while_compiling_rejects_the_config_map_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(compiling, "compile_files", broken)
    problem = compiled(KEYS).problem
    assert problem is not None
    assert problem.message == "compiling ended in a RecursionError, a bug; the scheduler's log says where"
    assert "too deep" in caplog.text


def test_params_yaml_holds_values_for_params() -> None:
    plain, more = compiled(KEYS), compiled({**KEYS, "params.yaml": 'safe.spare: 4Gi\nzones: [a, "b"]\n'})
    assert more.problem is None
    assert plain.profiles[0].policy_hash != more.profiles[0].policy_hash


@pytest.mark.parametrize("params", ["", "# nothing\n", "---\n", "zones: [a]\n"])
def test_params_yaml_may_say_nothing_new(params: str) -> None:
    assert compiled({**KEYS, "params.yaml": params}).profiles[0].policy_hash == compiled(KEYS).profiles[0].policy_hash


@pytest.mark.parametrize(
    ("params", "line", "message"),
    [
        ("zones: [a]\nsafe.spare: 65Gi\n", 2, "`65Gi` is outside the range [0, 64Gi] of `safe.spare`"),
        ("zones: [a]\n\nsafe.spare: lots\n", 3, "`lots` is not a value of type `memory`"),
        ("spare: 1Gi\n", 1, "did you mean `safe.spare`?"),
        ("zones: a\n", 1, "is not a value of type `list(string)`"),
        ("zones: [1]\n", 1, "is not a value of type `list(string)`"),
        ("- zones\n", 1, "is no mapping of params to values"),
        ("zones: [a]\nzones: [b]\n", 2, "gives `zones` twice"),
        ("zones: [a\n", 2, "is not YAML"),
        ('zones: [a]\nsafe.spare: "\\ud800"\n', 2, "holds half a character (a lone surrogate) on line 2"),
        ('"\\ud800": 1\n', 1, "holds half a character"),
        ("safe.spare: 1_000\n", 1, "`1_000` is not a value of type `memory`"),
        ("safe.spare: " + "9" * 6000, 1, "is not a value of type `memory`"),
        ("zones: &x [a]\n", 1, "alias or anchor"),
        ("zones: !!python/object:os.system [a]\n", 1, "uses the YAML tag"),
        ("zones: " + "[" * 60 + "]" * 60, 1, "levels deep"),
    ],
)
def test_a_bad_value_rejects_the_config_map_and_names_its_line(params: str, line: int, message: str) -> None:
    found = compiled({**KEYS, "params.yaml": params})
    assert found.profiles == ()
    assert found.problem is not None
    assert found.problem.line == line, found.problem
    assert "`params.yaml`" in found.problem.message and message in found.problem.message


def test_a_mistake_names_its_key_where_there_are_several() -> None:
    found = compiled({**KEYS, "c.policy": OVERLAY.replace("ready }", "redy }")}).problem
    assert found is not None
    assert found.message.startswith("`c.policy`: `node` has no field `redy`")
    alone = compiled({"c.policy": 'policy "p" { let a = b }'}).problem
    assert alone is not None and alone.message.startswith("nothing is called `b`")


@given(st.text(max_size=200))
def test_no_params_file_does_worse_than_be_refused(text: str) -> None:
    try:
        read_params(text)
    except PlainYamlError as error:
        assert "\n" not in str(error)


def test_opinions_of_lint_reject_a_config_map_where_they_are_asked_to() -> None:
    idle = {"a.policy": 'policy "p" { filter "f" { require true } }'}
    assert compiled(idle).problem is None
    found = compiled(idle, fail_level=Severity.WARNING).problem
    assert found is not None and found.message.endswith("[PE3002]") and (found.line, found.column) == (1, 35)
    assert compiled(KEYS, fail_level=Severity.WARNING).problem is None


TESTED = """policy "x" {
  param open: bool = true
  filter "door" { require open && node.ready }
  test "the door" {
    given node "a" { allocatable: {cpu: 4, pods: 9} }
    given pod "p" {}
    expect "p" on "a"
  }
}
"""


def test_a_policy_whose_tests_fail_is_rejected_with_the_test_and_its_line_whatever_its_params_are_set_to() -> None:
    found = compiled({"x.policy": TESTED.replace("open && node.ready", "!open && node.ready")})
    assert found.problem is not None and found.profiles == ()
    assert (found.problem.line, found.problem.column) == (7, 5)
    assert found.problem.message == (
        "test `the door` of policy `x` fails: expected `p` on `a`, but it fits nowhere [PE2950]"
    )
    for params in ({}, {"params.yaml": "open: false\n"}):
        assert [profile.name for profile in compiled({"x.policy": TESTED, **params}).profiles] == ["x"]
