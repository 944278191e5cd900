"""The recipes "Adding a …" are carried out in a copy of the tree, and each file is left out in turn."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contributing.recipes import CHANGES, PAGE, ROOT, Step, recipe

MOST = {"plugin": 5, "language function": 4, "lint rule": 5, "command": 4, "kind of object": 9}
COPIED = (
    "policyengine",
    "grammar",
    "tests",
    "docs",
    "deploy",
    "policies",
    "examples",
    ".pre-commit-hooks.yaml",
    "CONTRIBUTING.md",
    "pyproject.toml",
)
STEPS = [(title, step) for title in CHANGES for step in recipe(title)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("recipes") / "tree"
    copy.mkdir()
    for name in COPIED:
        where = ROOT / name
        if where.is_dir():
            shutil.copytree(where, copy / name)
        else:
            shutil.copy2(where, copy / name)
    (copy.parent / "shared").symlink_to(ROOT.parent / "shared")
    return copy


def ended(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=300, check=False)


def checks(tree: Path, *names: str) -> subprocess.CompletedProcess[str]:
    return ended(tree, "pytest", "-q", "-x", "-p", "no:xdist", *names)


def apply(tree: Path, title: str, without: str = "") -> dict[Path, str | None]:
    """Make the changes of a recipe, one file's left out. {file: its text before, None where there was none}."""
    before: dict[Path, str | None] = {tree / step.path: None for step in recipe(title)}
    for file in before:
        before[file] = file.read_text(encoding="utf-8") if file.exists() else None
    for path, edits in CHANGES[title].items():
        if path == without:
            continue
        text = before[tree / path] or ""
        for edit in edits:
            assert edit.before in text, (path, edit.before)
            text = text.replace(edit.before, edit.new + edit.before, 1) if edit.before else edit.new
        (tree / path).write_text(text, encoding="utf-8")
    return before


@pytest.fixture
def restored(tree: Path) -> Iterator[dict[Path, str | None]]:
    """What to put back afterwards."""
    before: dict[Path, str | None] = {}
    yield before
    for file, text in before.items():
        if text is None:
            file.unlink(missing_ok=True)
        else:
            file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("title", CHANGES)
def test_a_recipe_has_few_files_and_all_its_checks_pass(
    title: str, tree: Path, restored: dict[Path, str | None]
) -> None:
    steps = recipe(title)
    assert len(steps) <= MOST[title]
    assert {step.path for step in steps if not step.made_by or step.path in CHANGES[title]} == set(CHANGES[title])
    restored.update(apply(tree, title))
    for step in steps:
        if step.made_by:
            made = ended(tree, step.made_by)
            assert made.returncode == 0, made.stderr
    done = checks(tree, *dict.fromkeys([step.check for step in steps] + own_tests(steps)))
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize(("title", "step"), STEPS, ids=[f"{title}: {step.path}" for title, step in STEPS])
def test_a_forgotten_file_is_found_by_the_check_named_for_it(
    title: str, step: Step, tree: Path, restored: dict[Path, str | None]
) -> None:
    restored.update(apply(tree, title, without=step.path))
    done = checks(tree, step.check)
    assert done.returncode in (1, 2), done.stdout[-3000:] + done.stderr[-1000:]


def own_tests(steps: list[Step]) -> list[str]:
    """The tests that a recipe has one write; of a file of cases, the first of them."""
    written = [Path(step.path) for step in steps if step.path.startswith("tests/")]
    return [
        str(one) if one.suffix == ".py" else f"{one.parent}/test_rules.py::test_a_case[{one.stem}-1]" for one in written
    ]


def test_every_recipe_of_the_page_is_carried_out() -> None:
    assert [line.removeprefix("### Adding a ") for line in PAGE.splitlines() if line.startswith("### Adding a ")] == [
        *CHANGES
    ]
