"""`--param NAME=VALUE`, and files that are named together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.process import policyengine

CLUSTER = {
    "nodes": [
        {
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}, "conditions": []},
        }
        for name, cpu in (("small", "2"), ("big", "8"))
    ],
    "pending": [{"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [{"name": "c"}]}}],
}
LIBRARY = 'library "safe" {\n  param least: cpu = 1 range [0, 64]\n}\n'
POLICY = 'import "safe"\npolicy "p" {\n  filter "room" { require node.free.cpu >= safe.least else "{safe.least}" }\n}\n'


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "lib.policy").write_text(LIBRARY)
    (tmp_path / "policies" / "p.policy").write_text(POLICY)
    return tmp_path


def explained(files: Path, *options: str) -> dict[str, object]:
    where = ("--cluster", files / "cluster.json", "--policy", files / "policies")
    ended = policyengine("explain", "--alone", *where, *options, "-o", "json")
    assert ended.code == 0, ended.err
    rejected: dict[str, object] = json.loads(ended.out)[0]["rejected"]
    return rejected


def test_a_param_of_a_library_is_set_from_the_command_line(files: Path) -> None:
    assert explained(files) == {}
    assert list(explained(files, "--param", "safe.least=4")) == ["small"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("safe.least=65", "`65` is outside the range [0, 64] of `safe.least`"),
        ("least=4", "`least` is no parameter of the policy; did you mean `safe.least`?"),
        ("safe.least", "`safe.least` is not of the form NAME=VALUE"),
        ("safe.least=much", "`much` is not a value of type `cpu`"),
        ("safe.least=2KB", "`2KB` is not a value of type `cpu`; write `2k`"),
    ],
)
def test_a_param_that_cannot_be_so_is_one_message_and_exit_code_2(files: Path, given: str, message: str) -> None:
    where = ("--cluster", files / "cluster.json", "--policy", files / "policies")
    ended = policyengine("explain", *where, "--param", given)
    assert ended.code == 2
    assert message in ended.err


def config_map(name: str, policy: str, params: str) -> str:
    """A manifest with a policy, the library and a `params.yaml`."""
    data = {"p.policy": policy, "lib.policy": LIBRARY, "params.yaml": params}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


@pytest.fixture
def manifest(files: Path) -> Path:
    """A manifest instead of the policy files."""
    for file in (files / "policies").iterdir():
        file.unlink()
    path = files / "policies" / "configmap.yaml"
    path.write_text(config_map("p", POLICY, "safe.least: 4"))
    return path


def test_what_stands_beside_the_policies_in_a_manifest_counts_as_in_a_cluster(files: Path, manifest: Path) -> None:
    assert list(explained(files)) == ["small"]
    assert explained(files, "--param", "safe.least=2") == {}


def test_in_file_tests_run_with_what_stands_beside_the_policies(files: Path, manifest: Path) -> None:
    test = """  test "a node of two cores is too small" {
    given node "a" { allocatable: {cpu: 2, memory: 8Gi, pods: 10} }
    given pod "p" {}
    expect "p" rejected by "room"
  }
}
"""
    manifest.write_text(config_map("p", POLICY.rstrip("}\n") + "}\n" + test, "safe.least: 4"))
    assert policyengine("test", manifest).code == 0
    assert policyengine("test", manifest, "--param", "safe.least=2").code == 1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("safe.least: 65", "`65` is outside the range [0, 64] of `safe.least`"),
        ("- 4", "is no mapping of params to values"),
    ],
)
def test_a_params_file_that_cannot_be_so_is_one_message_and_exit_code_2(
    files: Path, manifest: Path, params: str, message: str
) -> None:
    manifest.write_text(config_map("p", POLICY, params))
    ended = policyengine("explain", "--cluster", files / "cluster.json", "--policy", manifest)
    assert ended.code == 2
    assert message in ended.err


def test_two_params_files_that_disagree_are_not_loaded_together(files: Path, manifest: Path) -> None:
    other = files / "policies" / "other.yaml"
    other.write_text(config_map("q", POLICY.replace('policy "p"', 'policy "q"'), "safe.least: 5"))
    ended = policyengine("explain", "--cluster", files / "cluster.json", "--policy", files / "policies")
    assert ended.code == 2
    assert "`safe.least` has one value in" in ended.err and "name one of the two" in ended.err


def test_lint_says_whether_the_policies_take_a_value(files: Path) -> None:
    for given, code in (("safe.least=4", 0), ("safe.least=65", 2)):
        ended = policyengine("lint", "--fail-level", "error", "--param", given, files / "policies")
        assert (ended.code, "error: `65` is outside the range" in ended.err) == (code, code == 2)


def test_of_a_policy_with_errors_lint_shows_those_first(files: Path) -> None:
    (files / "policies" / "p.policy").write_text(POLICY.replace("node.free.cpu", "node.free.disk"))
    ended = policyengine("lint", "--param", "least=4", files / "policies")
    assert ended.code == 1 and "disk" in ended.out


def test_a_param_may_not_be_given_twice(files: Path) -> None:
    twice = ("--param", "a=1", "--param", "a=2")
    ended = policyengine("explain", "--cluster", files / "cluster.json", "--policy", files / "policies", *twice)
    assert (ended.code, "`a` is given twice" in ended.err) == (2, True)


def test_a_library_that_is_not_among_the_files_is_a_finding_in_the_importing_one(files: Path) -> None:
    policy = files / "policies" / "p.policy"
    ended = policyengine("explain", "--cluster", files / "cluster.json", "--policy", policy)
    assert ended.code == 2
    assert "no library is called `safe`" in ended.err and "p.policy:1:8" in ended.err
