"""docs/lint.md says what the rules say, and its examples and those for CI are what the tools take."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from policyengine.commands.linting.explanations import pages
from policyengine.commands.main import COMMANDS, cli
from policyengine.language.lint.lint_settings import settings_of
from policyengine.language.lint.linter import LINT_CODES
from tests.docs.lint_page import BEGIN, END, KINDS, PAGE, generated
from tests.language.lint.findings import opinions

ROOT = Path(__file__).resolve().parents[2]
TEXT = PAGE.read_text(encoding="utf-8")


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT.split(BEGIN)[0], re.DOTALL | re.MULTILINE)


def test_the_pages_are_those_of_the_rules() -> None:
    assert TEXT.split(BEGIN)[1].split(END)[0] == generated(), "run `python -m tests.docs.lint_page`"


def test_no_part_of_the_compiler_has_a_code_without_a_page() -> None:
    code = (
        "from policyengine.commands.linting.explanations import pages\n"
        "known = pages()\n"
        "import policyengine.policy_compiler, policyengine.kube.scheduling\n"
        "print(sorted(pages().keys() - known.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_every_code_is_named_by_a_test() -> None:
    tests = ROOT / "tests"
    named = {path.stem for path in (tests / "language" / "lint").glob("PE*.md")}  # cases of a rule
    for path in tests.rglob("*.py"):
        named |= set(re.findall(r"PE[0-9]{4}", path.read_text(encoding="utf-8")))
    assert pages().keys() - named == set()


def test_every_code_belongs_to_one_kind() -> None:
    for code in pages():
        assert len([prefix for prefix in KINDS if code.startswith(prefix)]) == 1, code


def test_the_example_of_comments_allows_what_it_says() -> None:
    (example,) = examples("policy")
    assert {one.code for one in opinions(example)} == {"PE3801"}


def test_the_example_of_settings_is_understood() -> None:
    (example,) = examples("toml")
    settings = settings_of(tomllib.loads(example)["lint"], "the page", LINT_CODES)
    assert settings.budget == 10.0
    assert settings.ignored == {"PE3201"}


def commands_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return re.findall(r"^(?:\s*)(policyengine [^\n>]*)", value, re.MULTILINE)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [command for item in items for command in commands_in(item)]


@pytest.mark.parametrize(
    "name", [".pre-commit-hooks.yaml", "examples/ci/github-actions.yml", "examples/ci/gitlab-ci.yml"]
)
def test_files_for_ci_are_yaml_and_use_commands_and_flags_there_are(name: str) -> None:
    commands = commands_in(yaml.safe_load((ROOT / name).read_text(encoding="utf-8")))
    known = [command.split() for command in commands if len(command.split()) > 1 and command.split()[1] in COMMANDS]
    assert {"fmt", "lint"} <= {words[1] for words in known}
    for words in known:
        shown = CliRunner().invoke(cli, [words[1], "--help"]).output
        for flag in (word for word in words if word.startswith("--")):
            assert flag in shown


def test_hooks_have_what_pre_commit_wants() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [hook["entry"] for hook in hooks] == ["policyengine fmt", "policyengine lint", "policyengine test"]
    for hook in hooks:
        assert hook["language"] == "python"
        assert re.search(hook["files"], "policies/a.policy")
        assert not re.search(hook["files"], "a.policy.bak")
