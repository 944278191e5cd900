"""`policyengine lint`: findings at their places, exit codes, manifests, and input that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from policyengine.commands.lint import lint

GOOD = 'policy "t" {\n  scheduler "t"\n}\n'
BAD = 'policy "t" {\n  filter "f" { require node.redy }\n}\n'


def run(*args: object) -> Result:
    return CliRunner().invoke(lint, [str(arg) for arg in args])


def findings(*args: object) -> list[dict[str, Any]]:
    return json.loads(run("--format", "json", *args).stdout)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_file_passes(tmp_path: Path) -> None:
    result = run(write(tmp_path / "a.policy", GOOD))
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == "1 policy file checked, 0 findings\n"


def test_a_finding_shows_its_line_with_a_caret(tmp_path: Path) -> None:
    result = run(write(tmp_path / "a.policy", BAD))
    assert result.exit_code == 1
    assert "a.policy:2:29" in result.stdout
    assert "^^^^" in result.stdout
    assert "\x1b" not in result.stdout


def test_json_gives_every_field_of_the_contract(tmp_path: Path) -> None:
    path = write(tmp_path / "a.policy", BAD)
    (found,) = findings(path)
    assert {key: found[key] for key in ("severity", "file", "line", "column", "endLine", "endColumn")} == {
        "severity": "error",
        "file": str(path),
        "line": 2,
        "column": 29,
        "endLine": 2,
        "endColumn": 33,
    }
    assert found["code"].startswith("PE")
    assert "`ready`" in found["message"]


def test_nothing_found_is_an_empty_list(tmp_path: Path) -> None:
    result = run("--format", "json", write(tmp_path / "a.policy", GOOD))
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_a_syntax_error_is_a_finding(tmp_path: Path) -> None:
    path = write(tmp_path / "a.policy", 'policy "t" {\n  filter "f" { require (1 < }\n}\n')
    assert run(path).exit_code == 1
    assert [found["line"] for found in findings(path)] == [2]


def test_a_folder_stands_for_its_policies_and_manifests(tmp_path: Path) -> None:
    write(tmp_path / "a.policy", GOOD)
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep" / "b.policy", BAD)
    write(tmp_path / "cm.yaml", manifest(BAD))
    write(tmp_path / "deployment.yaml", "kind: Deployment\nmetadata: {name: x}\n")
    assert [Path(found["file"]).name for found in findings(tmp_path)] == ["cm.yaml", "b.policy"]


def manifest(text: str, key: str = "a.policy", name: str = "policies") -> str:
    body = "".join(f"    {line}\n" if line else "\n" for line in text.split("\n")[:-1])
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  note: hello\n  {key}: |\n{body}"


def test_a_finding_in_a_manifest_stands_at_its_yaml_line(tmp_path: Path) -> None:
    (found,) = findings(write(tmp_path / "cm.yaml", manifest(BAD)))
    assert (found["line"], found["column"], found["endColumn"]) == (9, 33, 37)


def test_empty_lines_and_deeper_indentation_do_not_move_it(tmp_path: Path) -> None:
    text = manifest("\n\n" + BAD.replace("\n  filter", "\n\n      filter"))
    (found,) = findings(write(tmp_path / "cm.yaml", text))
    line = text.split("\n")[found["line"] - 1]
    assert line[found["column"] - 1 : found["endColumn"] - 1] == "redy"


@pytest.mark.parametrize(
    "written",
    [
        "'policy \"t\" { let a = nope }'",
        'policy "t" { let a = nope }',
    ],
)
def test_a_policy_on_one_yaml_line_is_found_there(tmp_path: Path, written: str) -> None:
    text = f"kind: ConfigMap\ndata:\n  a.policy: {written}\n"
    if not written.startswith("'"):
        text = text.replace(": policy", ": >-\n    policy")
    (found,) = findings(write(tmp_path / "cm.yaml", text))
    assert found["line"] == 3
    if written.startswith("'"):
        assert text.split("\n")[2][found["column"] - 1 : found["endColumn"] - 1] == "nope"


def test_lists_and_several_documents_are_looked_into(tmp_path: Path) -> None:
    one = manifest(BAD).replace("\n", "\n  ").rstrip()
    path = write(tmp_path / "cm.yaml", f"kind: List\nitems:\n- {one}\n---\n{manifest(BAD, name='others')}")
    assert len(findings(path)) == 2


def scheduling_policy(text: str, params: str = "{}", name: str = "policies") -> str:
    body = "".join(f"      {line}\n" if line else "\n" for line in text.split("\n")[:-1])
    head = f"apiVersion: policyengine.io/v1alpha1\nkind: SchedulingPolicy\nmetadata: {{name: {name}}}\nspec:\n"
    return f"{head}  params: {params}\n  policies:\n    a.policy: |\n{body}"


def test_a_scheduling_policy_is_read_as_a_config_map_is(tmp_path: Path) -> None:
    text = scheduling_policy(BAD)
    path = write(tmp_path / "p.yaml", f"{text}---\n{manifest(BAD)}")
    assert len(findings(path)) == 2
    (found,) = findings(write(tmp_path / "q.yaml", text))
    assert text.split("\n")[found["line"] - 1][found["column"] - 1 : found["endColumn"] - 1] == "redy"


@pytest.mark.parametrize(
    "params",
    ["{most: 10}", "\n    # set here\n    most: 10", "\n\n      most: 10 # too many\n", "{\n  'most':\n    10}"],
)
def test_wrong_values_of_its_params_are_found_where_they_are_written(tmp_path: Path, params: str) -> None:
    text = scheduling_policy(BOUNDED, params)
    (found,) = [one for one in findings(write(tmp_path / "p.yaml", text)) if one["severity"] == "error"]
    line = text.split("\n")[found["line"] - 1]
    assert found["code"] == "PE2901" and line[found["column"] - 1 :].strip("'").startswith("most")
    good = write(tmp_path / "q.yaml", scheduling_policy(BOUNDED, params.replace("10", "9")))
    assert "PE2901" not in {one["code"] for one in findings(good)}


BOUNDED = """policy "t" {
  /// The most pods of a node.
  param most: int = 5 range [1, 9]
  filter "f" { require node.podCount < most else "runs {node.podCount} pods" }
}
"""


def with_params(text: str, params: str) -> str:
    return f"{manifest(text)}  params.yaml: |\n    # set here\n    {params}\n"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("most: 99", "`99` is outside the range [1, 9] of `most`"),
        ("most: many", "parameter `most`: `many` is not a value of type `int`"),
        ("mots: 5", "`mots` is no parameter of the policy; did you mean `most`?"),
        ("- most", "`params.yaml` is no mapping of params to values"),
    ],
)
def test_a_value_that_the_config_map_would_be_rejected_for_is_found_at_its_line(
    tmp_path: Path, params: str, message: str
) -> None:
    text = with_params(BOUNDED, params)
    path = write(tmp_path / "cm.yaml", text)
    assert run(path).exit_code == 1
    (found,) = [one for one in findings(path) if one["severity"] == "error"]
    assert (found["code"], found["file"]) == ("PE2901", str(path))
    assert message in found["message"]
    assert text.split("\n")[found["line"] - 1].strip() == params


def test_values_that_the_params_may_have_are_no_findings(tmp_path: Path) -> None:
    path = write(tmp_path / "cm.yaml", with_params(BOUNDED, "most: 9"))
    assert run(path).exit_code == 0
    assert "PE2901" not in {one["code"] for one in findings(path)}


def test_a_value_is_not_unknown_while_the_policy_that_may_have_it_is_broken(tmp_path: Path) -> None:
    broken = BOUNDED.replace("podCount <", "podCnt <")
    told = findings(write(tmp_path / "cm.yaml", with_params(broken, "other: 5")))
    assert [one["code"] for one in told if one["severity"] == "error"] == ["PE1002"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.policy", b"", "is empty"),
        ("a.policy", b"policy \xff", "is not UTF-8"),
        ("a.policy", b"//" + b"x" * (2 << 20), "larger than 1 MiB"),
        ("a.yaml", b"kind: [", "is not YAML on line 1"),
        ("a.yaml", b"kind: ConfigMap\n", "no ConfigMap with a `*.policy` key"),
        ("a.yaml", b"kind: ConfigMap\ndata: {a: &x b, c.policy: *x}\n", "alias or anchor on line 2"),
        ("a.yaml", b"kind: !!python/name:os.system x\n", "uses the YAML tag"),
        ("a.yaml", b"[" * 100, "levels deep"),
        ("a.yaml", b"kind: ConfigMap\ndata:\n  a.policy: ''\n", "is empty"),
    ],
)
def test_input_that_cannot_be_used_is_said_and_ends_with_2(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    result = run(path)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_missing_file_and_an_empty_folder_end_with_2(tmp_path: Path) -> None:
    assert run(tmp_path / "nowhere.policy").exit_code == 2
    result = run(tmp_path)
    assert result.exit_code == 2
    assert "holds no `*.policy` file" in result.stderr


def test_usable_files_are_checked_beside_unusable_ones(tmp_path: Path) -> None:
    result = run(tmp_path / "nowhere.policy", write(tmp_path / "a.policy", BAD))
    assert result.exit_code == 2
    assert "a.policy:2:29" in result.stdout


def test_no_path_is_wrong_usage() -> None:
    assert run().exit_code == 2


@pytest.mark.parametrize(
    ("beside", "told"),
    {
        'library "lib" { let x = 1 let y = nope }': "PE3001",
        'library "lib" { let x = 1 let y = }': "PE3001",
        'library "lib" { let x = 1 let y = nope let z = y }': "PE3001",
        'library "lib" { let x = 1 } overlay "o" on "a" { filter "z" { require nope else "no" } }': "PE3001",
        'library "lib" { let x = nope }': "PE1001",
    }.items(),
)
def test_an_error_in_a_file_beside_it_silences_no_finding_of_the_file(tmp_path: Path, beside: str, told: str) -> None:
    path = tmp_path / "a.policy"
    filters = (
        'filter "f" { require node.podCount < 0 else "no" } filter "g" { require node.podCount > lib.x else "no" }'
    )
    path.write_text(f'import "lib"\npolicy "a" {{ {filters} }}\n', encoding="utf-8")
    (tmp_path / "lib.policy").write_text(beside, encoding="utf-8")
    result = run(path)
    assert result.exit_code == 1, result.output
    assert f"[{told}]" in result.stdout
    assert ("nope" in result.stdout) is (told == "PE1001")


def test_a_code_is_explained() -> None:
    result = run("--explain", "pe1001")
    assert result.exit_code == 0
    assert result.stdout.startswith("PE1001: ")
    assert run("--explain", "PE9999").exit_code == 2


def test_a_finding_is_explained_by_the_smallest_cluster_that_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "a.policy"
    path.write_text('policy "a" {\n  filter "f" { require node.podCount < 0 else "no" }\n}\n', encoding="utf-8")
    result = run("--explain", "PE3001", f"{path}:2")
    assert result.exit_code == 0, result.output
    assert "warning[PE3001]: no node can pass" in result.stdout
    assert (
        "How it is known:\n  line 2: `node.podCount` lies within 0 and 2147483648\n"
        "  line 2: `node.podCount < 0` is true: nothing is left\n" in result.stdout
    )
    assert 'test "PE3001 of line 2, 1" {\n  // `node.podCount < 0` is false\n' in result.stdout
    assert "about what is written" in run("--explain", "PE3801", path).stdout
    none = run("--explain", "PE3001", f"{path}:1")
    assert none.exit_code == 2
    assert "there is no finding PE3001 in" in none.stderr


def piped(text: str, *args: object) -> Result:
    return CliRunner().invoke(lint, [str(arg) for arg in args], input=text)


def test_standard_input_is_read_under_a_name_of_its_own_or_one_that_is_given(tmp_path: Path) -> None:
    assert "--> <stdin>:2:29" in (found := piped(BAD, "-")).stdout
    assert piped(BAD, "-", "-").output == found.output, "which can be read once"
    assert found.exit_code == 1
    write(tmp_path / "safe.policy", 'library "safe" { param most: int = 5 }\n')
    text = 'import "safe"\npolicy "t" { filter "f" { require node.podCount < safe.most else "is full" } }\n'
    assert "no library is called `safe`" in piped(text, "-").stdout
    named = piped(text, "--stdin-filename", tmp_path / "t.policy", "-")
    assert named.exit_code == 0
    assert "error" not in named.stdout


def test_standard_input_may_be_a_manifest() -> None:
    policy = "".join(f"    {line}\n" for line in BAD.splitlines())
    manifest = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a.policy: |\n{policy}"
    assert "--> <stdin>:7:33" in piped(manifest, "-").stdout
    assert "holds no ConfigMap with" in piped("apiVersion: v1\nkind: Secret\n", "-").stderr


@pytest.mark.parametrize(("text", "told"), [("", "`<stdin>` is empty"), ("x" * (1 << 20) + "y", "larger than 1 MiB")])
def test_standard_input_that_is_no_policy_is_unusable(text: str, told: str) -> None:
    ended = piped(text, "-")
    assert ended.exit_code == 2
    assert told in ended.stderr


def test_fixes_are_not_written_into_standard_input() -> None:
    ended = piped(BAD, "--fix", "-")
    assert ended.exit_code == 2
    assert "name the file" in ended.stderr


@pytest.mark.parametrize(
    "member",
    [
        'test "t" { given pod "p" {} expect expect "p" rejected }',
        "base none use use NodeResourcesFit",
        'gang "g" { key: string(pod.attempts) min: 1 timeout: 1s }',
    ],
)
def test_a_policy_with_an_error_gets_no_opinions_whatever_member_it_is_in(tmp_path: Path, member: str) -> None:
    (tmp_path / "p.policy").write_text(f'policy "p" {{ filter "F" {{ require node.podCount >= 0 }} {member} }}')
    ended = CliRunner().invoke(lint, ["-o", "json", str(tmp_path / "p.policy")])
    assert ended.exit_code == 1 and {one["severity"] for one in json.loads(ended.stdout)} == {"error"}


def test_what_a_plugin_refuses_of_arguments_that_fit_its_schema_is_found(tmp_path: Path) -> None:
    use = 'use DynamicResources { filterTimeout: "-1s" }'
    [found] = findings(write(tmp_path / "a.policy", f'policy "t" {{\n  {use}\n  filter "F" {{ require true }}\n}}\n'))
    assert (found["code"], found["line"], found["column"]) == ("PE2902", 2, 3)
    assert found["message"] == "`DynamicResources`: `filterTimeout`: `-1s` must be zero or positive"
