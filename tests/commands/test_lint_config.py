"""Where lint's settings come from, what they change, and what is said of those that make no sense."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from policyengine.commands.lint import lint

TEXT = 'policy "t" {\n  scheduler "t"\n  filter "F" { require node.name.matches("a") else "no" }\n}\n'


def run(*args: object) -> Result:
    return CliRunner().invoke(lint, [str(arg) for arg in args])


def severities(path: Path) -> dict[str, str]:
    return {found["code"]: found["severity"] for found in json.loads(run("--format", "json", path).stdout)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    (folder / "a.policy").write_text(TEXT, encoding="utf-8")
    return folder / "a.policy"


def test_without_settings_rules_have_their_own_severity(file: Path) -> None:
    assert severities(file) == {"PE3801": "info", "PE3504": "info", "PE3508": "warning"}


@pytest.mark.parametrize(
    ("name", "section"), [("policyengine.toml", "lint"), ("pyproject.toml", "tool.policyengine.lint")]
)
def test_settings_above_the_file_count(file: Path, tmp_path: Path, name: str, section: str) -> None:
    text = f'[{section}]\nignore = ["PE3801"]\n[{section}.severity]\nPE3504 = "error"\nPE3508 = "info"\n'
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert severities(file) == {"PE3504": "error", "PE3508": "info"}
    assert run("--fail-level", "error", file).exit_code == 1


def test_the_nearest_settings_count_alone(file: Path, tmp_path: Path) -> None:
    (tmp_path / "policyengine.toml").write_text('[lint]\nignore = ["PE3504"]\n', encoding="utf-8")
    (file.parent / "pyproject.toml").write_text('[project]\nname = "x"\n', encoding="utf-8")
    assert "PE3504" not in severities(file)
    (file.parent.parent / "pyproject.toml").write_text(
        '[tool.policyengine.lint]\nignore = ["PE3508"]\n', encoding="utf-8"
    )
    assert severities(file) == {"PE3801": "info", "PE3504": "info"}


def test_a_small_budget_makes_a_decision_too_dear(file: Path, tmp_path: Path) -> None:
    (tmp_path / "policyengine.toml").write_text('[lint]\nbudget = "1us"\n', encoding="utf-8")
    assert severities(file)["PE3702"] == "warning"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[lint", "is not TOML"),
        ("[lint]\nignored = []\n", "`ignored` is no setting; did you mean `ignore`?"),
        ('[lint]\nignore = "PE3801"\n', "`ignore` is a list of codes"),
        ('[lint]\nignore = ["PE3999"]\n', "no rule has the code `PE3999`"),
        ('[lint]\nignore = ["PE1001"]\n', "`PE1001` is an error"),
        ('[lint.severity]\nPE3801 = "fatal"\n', "the severity of `PE3801` is `error`, `warning` or `info`"),
        ("[lint]\nseverity = 5\n", "`severity` is a table"),
        ('[lint]\nbudget = "5 minutes"\n', "`budget` is a time"),
        ("[lint]\nbudget = 5\n", "`budget` is a time"),
        ('lint = "x"\n', "is a table"),
        ('ignore = ["PE3801"]\n', "`ignore` settles nothing there; the settings stand under `[lint]`"),
    ],
)
def test_settings_that_make_no_sense_are_said_once_and_end_with_2(file: Path, text: str, message: str) -> None:
    from policyengine.commands.main import main

    (file.parent / "policyengine.toml").write_text(text, encoding="utf-8")
    other = file.with_name("b.policy")
    other.write_text(TEXT.replace('"t"', '"u"'), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["lint", str(file.parent)])
    assert ended.value.code == 2
    error = run(file.parent).exception
    assert message in str(error)
    assert "policyengine.toml" in str(error)
