"""`policyengine test`: formats, verdicts, suites."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner, Result

from policyengine.commands.main import cli
from policyengine.commands.testing.suite import schema
from tests.commands.junit import assert_is_junit

POLICY = """policy "p" {
  param most: int = 1 range [0, 9]
  filter "small" { require node.podCount < most else "is full" }
  score "named" weight 3 = node.name == "a" ? 80 : 20
  gang "g" when "g" in pod.labels { key: pod.labels["g"] min: 2 timeout: 60s }
%s
}
"""
A = 'given node "a" { allocatable: {cpu: 4, memory: 8Gi, pods: 10} }'
GOOD = f"""  test "good" {{
    {A}
    given pod "p" {{}}
    expect "p" on "a"
  }}"""
BAD = f"""  test "bad" {{
    {A}
    given pod "p" {{}}
    expect "p" rejected by "small"
  }}"""
EMPTY = f'  test "empty" {{ {A} given pod "p" {{}} }}'


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["test", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def policy(folder: Path, *tests: str, name: str = "x.policy") -> Path:
    path = folder / name
    path.write_text(POLICY % "\n".join(tests), encoding="utf-8")
    return path


def test_passing_tests_are_counted_and_the_code_is_0(folder: Path) -> None:
    result = run(policy(folder, GOOD))
    assert (result.exit_code, result.stdout) == (0, "1 test of 1 policy, all passed\n")


def test_a_failure_shows_what_was_expected_what_happened_and_the_line(folder: Path) -> None:
    path = policy(folder, GOOD, BAD)
    result = run(path)
    assert result.exit_code == 1
    assert f'FAIL {path}:11:3: policy "p", test "bad"' in result.stdout
    assert f"  {path}:14:5: expected `p` rejected by `small`, but it is on `a`" in result.stdout
    assert '  14 |     expect "p" rejected by "small"\n' in result.stdout
    assert "     = `a` has" in result.stdout
    assert result.stdout.endswith("2 tests of 1 policy, 1 failed\n")


@pytest.mark.parametrize(("tests", "said"), [((), "no tests were found"), ((EMPTY,), "the test expects nothing")])
def test_an_empty_or_vacuous_run_fails(folder: Path, tests: tuple[str, ...], said: str) -> None:
    result = run(policy(folder, *tests))
    assert result.exit_code == 1
    assert said in result.output


def test_a_policy_with_errors_or_a_file_that_is_none_is_unusable(folder: Path) -> None:
    path = policy(folder, '  filter "f" { require pod.nme == "x" }', GOOD)
    result = run(path)
    assert result.exit_code == 2
    assert "PE1002" in result.stderr
    assert result.stdout == "", "nothing ran, so nothing is counted"
    assert run(folder / "none.policy").exit_code == 2
    assert run().exit_code == 2


def test_a_param_may_have_another_value(folder: Path) -> None:
    path = policy(folder, BAD)
    assert run(path, "--param", "most=0").exit_code == 0
    assert run(path, "--param", "most=10").exit_code == 2
    result = run(path, "--param", "mots=1")
    assert (result.exit_code, "no policy has a param `mots`" in result.stderr) == (2, True)


def test_a_manifest_is_run_with_the_places_of_its_lines(folder: Path) -> None:
    path = folder / "policy.yaml"
    block = "".join(f"    {line}\n" for line in (POLICY % BAD).splitlines())
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  x.policy: |\n"
    path.write_text(head + block, encoding="utf-8")
    result = run(path)
    assert result.exit_code == 1
    assert f"{path}:14:9: expected `p` rejected by `small`" in result.stdout


# --- coverage and mutation -----------------------------------------------------------------------------


def test_coverage_names_what_was_never_seen(folder: Path) -> None:
    path = policy(folder, GOOD)
    result = run("--coverage", path)
    assert result.exit_code == 0
    assert f'{path}:3:28: `require` of filter "small" was never seen to refuse' in result.stdout
    assert f"{path}:4:28: condition of `?:` was never false" in result.stdout
    assert result.stdout.endswith("all passed, 57.1 % covered\n")


@pytest.mark.parametrize(("least", "code"), [("57", 0), ("58", 1)])
@pytest.mark.parametrize("flag", ["--coverage-min", "--fail-under"])
def test_a_minimum_makes_coverage_a_verdict(folder: Path, flag: str, least: str, code: int) -> None:
    result = run(policy(folder, GOOD), flag, least)
    assert result.exit_code == code
    assert ("57.1 % is covered, and 58 % is wanted" in result.stderr) == (code == 1)


def test_mutation_lists_survivors_with_line_and_change(folder: Path) -> None:
    path = policy(folder, GOOD)
    result = run("--mutate", path)
    assert result.exit_code == 0
    assert f"{path}:4:3: no test notices that weight 3 became 30" in result.stdout
    assert re.search(r"(\d+) % \(\d+ of \d+\) changes noticed", result.stdout)
    assert run("--mutation-min", "99", path).exit_code == 1
    assert run("--mutate", path).stdout == result.stdout


def test_pods_with_one_uid_do_not_end_a_test(folder: Path) -> None:
    pods = [f'given pod "{name}" on "{node}" {{ uid: "x" }}' for name, node in (("p", "a"), ("q", "a"), ("r", "b"))]
    nodes = [f'given node "{name}" {{ allocatable: {{pods: 9}} }}' for name in "ab"]
    steps = " ".join([*nodes, *pods, 'given pod "s" {} expect that placed("s")'])
    result = run(policy(folder, f'test "t" {{ {steps} }}'))
    assert result.exit_code == 0, result.output


def test_what_fails_already_is_not_mutated(folder: Path) -> None:
    result = run("--mutate", policy(folder, BAD))
    assert result.exit_code == 1
    assert "notice" not in result.stdout


# --- formats -------------------------------------------------------------------------------------------


def test_json_has_places_statuses_and_coverage(folder: Path) -> None:
    path = policy(folder, GOOD, BAD, EMPTY)
    result = run("--format", "json", "--coverage", path)
    found = json.loads(result.stdout)
    assert found["passed"] is False
    assert [(test["name"], test["status"], test["line"]) for test in found["tests"]] == [
        ("good", "passed", 6),
        ("bad", "failed", 11),
        ("empty", "vacuous", 16),
    ]
    assert found["tests"][1]["failures"][0]["file"] == str(path)
    assert found["coverage"][0]["policy"] == "p"
    assert {"file", "line", "column", "what", "never"} == found["coverage"][0]["missing"][0].keys()


def test_junit_has_a_case_a_test_and_failures_with_their_place(folder: Path) -> None:
    path = policy(folder, GOOD, BAD)
    result = run("--format", "junit", path)
    assert result.exit_code == 1
    root = ElementTree.fromstring(result.stdout)
    assert (root.tag, root.get("tests"), root.get("failures")) == ("testsuites", "2", "1")
    (suite,) = root
    assert (suite.tag, suite.get("name"), suite.get("tests")) == ("testsuite", "p", "2")
    good, bad = suite
    assert (good.get("name"), good.get("classname"), len(good)) == ("good", f"{path}:p", 0)
    assert_is_junit(root)
    (failure,) = bad
    assert (failure.tag, failure.get("type")) == ("failure", "failed")
    assert failure.get("message") == "expected `p` rejected by `small`, but it is on `a`"
    assert f"{path}:14:5" in (failure.text or "")


def test_junit_survives_any_name(folder: Path) -> None:
    result = run("--format", "junit", policy(folder, GOOD.replace('"good"', r'"<&\uffff\"\ufffe"')))
    assert result.exit_code == 0
    assert ElementTree.fromstring(result.stdout)[0][0].get("name") == '<&�"�'


# --- suites --------------------------------------------------------------------------------------------

SUITE = """
policy: x.policy
nodes:
  a: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
tests:
  - name: placement, order and numbers
    nodes:
      b: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
    pods:
      there: {on: b, requests: {cpu: 1}}
      p: {}
      q: {}
    expect:
      - {pod: p, on: a}
      - {pod: p, before: q}
      - {pod: q, rejected: true}
      - {pod: p, rejected: {on: b, by: small, reason: is full}}
      - {pod: p, node: a, by: named, score: 80}
      - {pod: p, node: a, total: {atLeast: 240}}
  - name: a gang comes together
    params: {most: 5}
    pods:
      one: {labels: {g: x}}
    expect:
      - {pod: one, waits: true}
      - {gang: {key: x, size: 1, bound: 0, waiting: 1}}
    steps:
      - after: 10s
        pods:
          two: {labels: {g: x}}
        expect:
          - {gang: {key: x, bound: 2}}
  - name: only ${most} fit
    params: {most: "${most}"}
    pods: {p: {}, q: {}, r: {}}
    expect:
      - {pod: "${last}", on: a}
      - {pod: "${next}", rejected: {by: small}}
    cases:
      - {most: 1, last: p, next: q}
      - {most: 2, last: q, next: r}
"""


def suite(folder: Path, text: str = SUITE, name: str = "x.test.yaml") -> Path:
    policy(folder)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_suite_runs_against_the_policy_beside_it(folder: Path) -> None:
    result = run(suite(folder))
    assert (result.exit_code, result.stdout) == (0, "4 tests of 1 policy, all passed\n"), result.output


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ("annotation: example.com/zone, value: 'on ${on}'", ""),
        ("annotation: example.com/other, value: null", ""),
        ("logged: '${text}'", ""),
        ("annotation: example.com/zone, value: null", 'annotation("p", "example.com/zone"): on a'),
        ("annotation: example.com/other, value: x", 'annotation("p", "example.com/other"): none'),
        ("logged: p", 'logged("p", "p"): false'),
        ("logged: p goes, value: x", "tests.0.expect.0"),
        ("annotation: example.com/zone", "tests.0.expect.0"),
    ],
)
def test_a_suite_sees_annotations_and_log_lines(folder: Path, expected: str, told: str) -> None:
    members = 'bind { annotations: {"example.com/zone": "on {node.name}"} } on reserve log "{pod.name} goes"'
    (folder / "x.policy").write_text(f'policy "x" {{ base none {members} }}', encoding="utf-8")
    cases = "cases: [{on: a, text: p goes}]"
    text = f"tests: [{{name: t, nodes: {{a: {{}}}}, pods: {{p: {{}}}}, {cases}, expect: [{{pod: p, {expected}}}]}}]"
    (folder / "x.test.yaml").write_text(text, encoding="utf-8")
    result = run(folder / "x.test.yaml")
    assert (result.exit_code == 0, told in result.output) == (not told, True), result.output


def test_a_folder_brings_its_suites_and_they_count_for_coverage(folder: Path) -> None:
    suite(folder)
    policy(folder, GOOD)
    result = run("--coverage", "--mutate", folder)
    assert result.exit_code == 0, result.output
    assert "5 tests of 1 policy, all passed, 100 % covered" in result.stdout


def test_a_failure_of_a_suite_has_its_line(folder: Path) -> None:
    path = suite(folder, SUITE.replace("score: 80", "score: 81"))
    result = run(path)
    assert result.exit_code == 1
    line = SUITE.replace("score: 80", "score: 81").splitlines().index("      - {pod: p, node: a, by: named, score: 81}")
    assert f"{path}:{line + 1}:9: expected the score of `named` for `p` on `a` to be 81, but it is 80" in result.stdout


WRONG: list[tuple[str, str, str]] = [
    ("pod: p, on: a", "pod: p, on: c", "line 14, column 22: no node was given as `c`"),
    ("pod: p, before: q", "pod: p, before: p", "no other pod was given as `p`"),
    ("by: small, reason", "by: smal, reason", "no rule or plugin is called `smal`; did you mean `small`?"),
    ("{most: 5}", "{mots: 5}", "no param is called `mots`; did you mean `most`?"),
    ("{most: 5}", "{most: 50}", "`50` is outside the range [0, 9] of `most`"),
    ("requests: {cpu: 1}", "request: {cpu: 1}", "a given pod has no field `request`; did you mean `requests`?"),
    ("requests: {cpu: 1}", "qos: Guaranteed", "`qos` is not given: it follows from requests and limits"),
    ("requests: {cpu: 1}", "requests: {cpu: x}", "`requests` is a map of amounts"),
    ("after: 10s", "after: 10m", "`10m` is no duration; write `10s` or `5min`"),
    ("${next}", "${nxt}", "no case gives `nxt`; this one gives `most`, `last`, `next`"),
    ("score: 80", "score: high", "tests.0.expect.4"),
    ("policy: x.policy", "polcy: x.policy", "`polcy` is unknown; did you mean `policy`?"),
    ("policy: x.policy", "policy: y.policy", "does not exist"),
    ("name: a gang comes together", "name: placement, order and numbers", "another test is called"),
    ("nodes:\n  a:", "nodes: &x\n  a:", "alias or anchor"),
    ("    pods:\n      one:", "    pods: {}\n    pods:\n      one:", "the key `pods` is there twice"),
]


@pytest.mark.parametrize(("good", "bad", "message"), WRONG, ids=[bad for _, bad, _ in WRONG])
def test_a_wrong_suite_is_unusable_and_says_where(folder: Path, good: str, bad: str, message: str) -> None:
    assert good in SUITE
    result = run(suite(folder, SUITE.replace(good, bad, 1)))
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_further_objects_stand_in_the_cluster(folder: Path) -> None:
    text = """
tests:
  - name: a claim that waits for nobody
    objects:
      - {kind: StorageClass, metadata: {name: s}, provisioner: x, volumeBindingMode: Immediate}
      - kind: PersistentVolumeClaim
        metadata: {name: c, namespace: default}
        spec: {storageClassName: s}
    nodes: {a: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
    pods: {p: {volumes: [{name: v, claim: c}]}}
    expect:
      - {pod: p, rejected: {by: VolumeBinding, reason: unbound immediate}}
"""
    result = run(suite(folder, text))
    assert result.exit_code == 0, result.output


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_the_tests_of_standard_input_are_run() -> None:
    for test, code in ((GOOD, 0), (BAD, 1)):
        ended = CliRunner().invoke(cli, ["test", "-"], input=POLICY % test)
        assert ended.exit_code == code, ended.output
    assert "<stdin>:" in ended.stdout


def test_huge_pages_are_compared_as_the_bytes_they_are(tmp_path: Path) -> None:
    text = """policy "p" {
  let huge = node.free[?"hugepages-2Mi"].orValue(0)
  filter "huge" { require huge >= 2Gi else "{huge}" }
  test "enough" {
    given node "a" { allocatable: {cpu: 4, memory: 8Gi, pods: 9, "hugepages-2Mi": 2Gi} }
    given node "b" { allocatable: {cpu: 4, memory: 8Gi, pods: 9, "hugepages-2Mi": 2046Mi} }
    given pod "p" {}
    expect "p" on "a"
    expect "p" rejected on "b" by "huge"
    expect that reason("p", "b").orValue("") == "2046Mi"
  }
}
"""
    file = tmp_path / "x.policy"
    file.write_text(text, encoding="utf-8")
    ended = run(file)
    assert ended.exit_code == 0, ended.output


NATIVE = """
nodes: {a: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
tests:
  - name: of two one is there
    objects:
      - apiVersion: scheduling.k8s.io/v1beta1
        kind: PodGroup
        metadata: {name: g}
        spec: {schedulingPolicy: {gang: {minCount: 2}}}
    pods: {p: {spec: {schedulingGroup: {podGroupName: g}}}}
    expect:
      - {pod: p, waits: true}
"""


def test_a_pod_group_of_kubernetes_own_is_one_and_without_a_namespace_it_is_in_default(folder: Path) -> None:
    gang = """gang "g" { key: pod.podGroup.orValue("") min: podGroup.?minMember.orValue(1) timeout: 1min }"""
    (folder / "g.policy").write_text(f'policy "g" {{ {gang} }}')
    (folder / "g.test.yaml").write_text(NATIVE)
    result = run(folder / "g.test.yaml")
    assert result.exit_code == 0, result.output
    (folder / "g.test.yaml").write_text(NATIVE.replace("kind: PodGroup", "kind: NativePodGroup"))
    result = run(folder / "g.test.yaml")
    assert result.exit_code == 2 and "ConfigMap, PodGroup, Lease\n" in result.stderr


def test_a_node_with_an_amount_below_0_is_told_and_not_taken_for_one_without_room(folder: Path) -> None:
    step = 'given node "a" { allocatable: {cpu: -4, memory: 8Gi, pods: 10} }'
    result = run(policy(folder, f'test "t" {{ {step} given pod "p" {{}} expect "p" on "a" }}'))
    assert result.exit_code == 1 and "status.allocatable: `cpu`: `-4` is negative" in result.stdout


def test_where_there_is_no_node_a_pod_is_rejected_and_by_no_rule(folder: Path) -> None:
    assert run(policy(folder, 'test "t" { given pod "p" {} expect "p" rejected }')).exit_code == 0
    result = run(policy(folder, 'test "t" { given pod "p" {} expect "p" rejected by "NodeName" }'))
    assert result.exit_code == 1 and "it was rejected by `nobody`" in result.stdout
