"""What `lint` writes for programs: GitHub's commands, SARIF, JUnit; and nothing else on standard output."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from click.testing import CliRunner, Result

from policyengine.commands.lint import FORMATS, lint
from tests.commands.junit import assert_is_junit

TEXT = """\
/// Tests come later.
policy "t" {
  scheduler "t"
  filter "f" {
    require node.labels[?"beta.kubernetes.io/arch"].orValue("") != "arm"
      else "50% of, say: arm"
  }
  let unused = 5
}
"""


def run(*args: object) -> Result:
    return CliRunner().invoke(lint, [str(arg) for arg in args])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a b,c.policy"
    path.write_text(TEXT, encoding="utf-8")
    return path


def log(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("--format", "sarif", path).stdout)
    return found


@pytest.mark.parametrize("output", FORMATS)
def test_the_exit_code_is_the_same_in_every_format(file: Path, output: str) -> None:
    assert run("--format", output, file).exit_code == 1
    assert run("--format", output, "--fail-level", "error", file).exit_code == 0
    assert run("--format", output, file, file.parent / "missing.policy").exit_code == 2


def test_github_gets_a_command_a_finding_with_its_place_escaped(file: Path) -> None:
    lines = run("--format", "github", file).stdout.splitlines()
    assert [re.match(r"::(\w+) ", line)[1] for line in lines] == ["notice", "warning", "warning"]  # type: ignore[index]
    arch = next(line for line in lines if "PE3513" in line)
    assert "a b%2Cc.policy,line=5,endLine=5,col=26,endColumn=51,title=PE3513::" in arch
    assert arch.endswith('(write `"kubernetes.io/arch"`)')


def test_sarif_names_its_rules_and_places(file: Path) -> None:
    found = log(file)
    assert found["version"] == "2.1.0"
    (one,) = found["runs"]
    assert one["tool"]["driver"]["name"] == "policyengine"
    rules, results = one["tool"]["driver"]["rules"], one["results"]
    assert [rules[result["ruleIndex"]]["id"] for result in results] == [result["ruleId"] for result in results]
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in rules)
    arch = next(result for result in results if result["ruleId"] == "PE3513")
    place = arch["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("/a%20b%2Cc.policy")
    assert place["region"] == {"startLine": 5, "startColumn": 26, "endLine": 5, "endColumn": 51}
    (replacement,) = arch["fixes"][0]["artifactChanges"][0]["replacements"]
    assert replacement["insertedContent"]["text"] == '"kubernetes.io/arch"'


def fingerprints(path: Path) -> list[str]:
    results = log(path)["runs"][0]["results"]
    return sorted(result["partialFingerprints"]["policyengine/v1"] for result in results)


def test_a_fingerprint_stays_where_lines_move_and_goes_with_its_text(file: Path) -> None:
    before = fingerprints(file)
    assert len(set(before)) == 3
    file.write_text("// a licence\n\n" + TEXT.replace("  ", "    "), encoding="utf-8")
    assert fingerprints(file) == before
    file.write_text(TEXT.replace('"arm"', '"riscv"'), encoding="utf-8")
    assert len(set(fingerprints(file)) & set(before)) == 2


def test_two_findings_of_the_same_words_have_two_fingerprints(tmp_path: Path) -> None:
    path = tmp_path / "a.policy"
    path.write_text('policy "t" {\n  let a =\n    nope\n  let b =\n    nope\n}\n', encoding="utf-8")
    assert len(set(fingerprints(path))) == 2


def test_junit_has_a_suite_a_file_and_a_failure_a_finding(file: Path) -> None:
    clean = file.with_name("clean.policy")
    clean.write_text('policy "c" {\n  scheduler "c"\n}\n', encoding="utf-8")
    root = Xml.fromstring(run("--format", "junit", file, clean).stdout)
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "4",
        "failures": "3",
        "errors": "0",
    }
    suites = {str(suite.get("name")): len(suite.findall("testcase/failure")) for suite in root}
    assert suites == {str(file): 3, str(clean): 0}
    assert "^^^" in (root.find(".//failure").text or "")  # type: ignore[union-attr]
    assert_is_junit(root)


@pytest.mark.parametrize("output", ["json", "sarif", "junit", "github"])
def test_odd_characters_do_not_break_the_format(tmp_path: Path, output: str) -> None:
    path = tmp_path / "a.policy"
    path.write_text('policy "t" {\n  let a = "\x01" + nope\x02 + "\u2028"\n}\n', encoding="utf-8")
    written = run("--format", output, path).stdout
    if output in ("json", "sarif"):
        assert json.loads(written)
    elif output == "junit":
        assert Xml.fromstring(written) is not None
    else:
        assert all(line.startswith("::") for line in written.splitlines())


@pytest.mark.parametrize(("output", "empty"), [("text", ""), ("github", ""), ("json", "[]\n")])
def test_nothing_found_writes_what_means_nothing(tmp_path: Path, output: str, empty: str) -> None:
    path = tmp_path / "clean.policy"
    path.write_text('policy "c" {\n  scheduler "c"\n}\n', encoding="utf-8")
    assert run("--format", output, path).stdout == empty
