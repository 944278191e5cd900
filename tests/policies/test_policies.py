"""Every policy in `policies/` compiles and is linted without a finding; `make policies` runs the tests in it, which
see every branch."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from policyengine.commands.lint import lint
from policyengine.language import ir
from policyengine.language.diagnostics import Source, render
from policyengine.language.format import format_source
from policyengine.policy_compiler import checked_files, compile_files

FOLDER = Path(__file__).resolve().parents[2] / "policies"
FILES = sorted(FOLDER.glob("*.policy"))
LIBRARIES = sorted((FOLDER / "lib").glob("*.policy"))


def source_of(file: Path) -> Source:
    return Source(file.name, file.read_text(encoding="utf-8"))


def sources_of(file: Path) -> list[Source]:
    """The policy's file, and the libraries that any policy may import."""
    return [source_of(one) for one in (file, *LIBRARIES)]


def policy_of(file: Path) -> ir.Policy:
    policies, findings = checked_files(sources_of(file))
    assert not findings, render(findings, source_of(file))
    assert len(policies) == 1
    return policies[0]


def test_there_are_policies_worth_copying() -> None:
    assert {file.stem for file in FILES} >= {"riya", "training"}
    assert len(FILES) >= 5


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_policy_compiles_without_a_finding_and_has_tests(file: Path) -> None:
    result = compile_files(sources_of(file))
    assert not result.diagnostics, render(result.diagnostics, result.sources[0])
    assert [profile.name for profile in result.profiles] == [file.stem]
    assert policy_of(file).tests


@pytest.mark.parametrize("file", [*FILES, *LIBRARIES], ids=lambda file: file.stem)
def test_a_policy_is_written_in_the_one_style(file: Path) -> None:
    assert format_source(source_of(file)) == (source_of(file).text, [])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_policy_is_clean_at_the_default_level_of_lint(file: Path) -> None:
    result = CliRunner().invoke(lint, [str(file), str(FOLDER / "lib")])
    assert result.exit_code == 0, result.output
