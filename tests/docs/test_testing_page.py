"""docs/testing.md says what the schema says, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from policyengine.commands.main import cli
from policyengine.commands.test import test as command
from tests.docs.testing_tables import PAGE, written

TEXT = PAGE.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def test_the_tables_are_those_of_the_schema() -> None:
    assert written(TEXT) == TEXT, "run `python -m tests.docs.testing_tables`"


@pytest.mark.parametrize("text", blocks("policy"), ids=range(len(blocks("policy"))))
def test_an_example_passes_its_own_tests(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.policy"
    path.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(cli, ["test", str(path)])
    assert result.exit_code == 0, result.output


def test_the_suite_passes_with_the_first_policy(tmp_path: Path) -> None:
    (tmp_path / "small.policy").write_text(blocks("policy")[0], encoding="utf-8")
    (suite,) = blocks("yaml")[:1]
    (tmp_path / "small.test.yaml").write_text(suite, encoding="utf-8")
    result = CliRunner().invoke(cli, ["test", str(tmp_path)])
    assert result.exit_code == 0, result.output


def test_every_option_has_a_line() -> None:
    options = [option for parameter in command.params for option in parameter.opts if option.startswith("--")]
    assert [option for option in options if f"`{option}" not in TEXT] == []
