"""What `policyengine new` makes lints, formats, passes its tests, and can be used."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from click.testing import CliRunner

from policyengine.commands import installed_plugins
from policyengine.commands.fmt import fmt
from policyengine.commands.installed_plugins import GROUP, installed_registry
from policyengine.commands.lint import lint
from policyengine.commands.linting import files as lint_files
from policyengine.commands.new import POINTS, module_name, new, plugin_name
from policyengine.commands.test import test as run_tests
from policyengine.compiler.conversion.scheduler_configuration import POINTS as EXTENSION_POINTS
from tests.commands.process import ROOT


def made(*arguments: str, into: Path) -> str:
    ended = CliRunner().invoke(new, [*arguments, "--into", str(into)])
    assert ended.exit_code == 0, ended.output
    return ended.output


def works(policy: Path) -> None:
    assert CliRunner().invoke(fmt, ["--check", str(policy)]).exit_code == 0
    linted = CliRunner().invoke(lint, ["--fail-level", "info", str(policy)])
    assert linted.exit_code == 0, linted.output
    tested = CliRunner().invoke(run_tests, ["--coverage", "--fail-under", "100", str(policy)])
    assert tested.exit_code == 0, tested.output


@pytest.mark.parametrize("name", ["cool", "a-1-b"])
def test_a_new_policy_lints_and_passes_its_tests_with_full_coverage(name: str, tmp_path: Path) -> None:
    assert f"{name}.policy" in made("policy", name, into=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.policy"]
    works(tmp_path / f"{name}.policy")


STARTS = {kind: point for point, (kind, _) in POINTS.items()}.values()
"""A point for each of the texts that a plugin may begin with."""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin of each."""
    folder = tmp_path_factory.mktemp("packages")
    for point in STARTS:
        made("plugin", f"my-{point}", "--point", point, into=folder)
    return folder


@pytest.mark.parametrize("point", STARTS)
def test_a_new_plugin_is_a_package_whose_policy_works(
    point: str, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, package = f"my-{point}", packages / f"my-{point}"
    module = module_name(name)
    files = {"README.md", f"{name}.policy", f"{module}.py", "pyproject.toml", f"test_{module}.py"}
    assert {path.name for path in package.iterdir()} == files
    assert "$" not in "".join(path.read_text() for path in package.iterdir())

    monkeypatch.syspath_prepend(str(package))
    points = EntryPoints([EntryPoint(plugin_name(name), f"{module}:ENTRY", GROUP)])
    monkeypatch.setattr(installed_plugins, "entry_points", lambda group: points.select(group=group))
    monkeypatch.setattr(lint_files, "packages_bring_plugins", lambda: True)
    installed_registry.cache_clear()
    try:
        works(package / f"{name}.policy")
    finally:
        installed_registry.cache_clear()
        sys.modules.pop(module, None)


def test_tests_of_new_plugins_pass_and_all_is_written_as_ruff_would_have_it(packages: Path) -> None:
    path = os.pathsep.join(map(str, (*packages.iterdir(), ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    for tool, *arguments in (
        ("pytest", "-q", "-p", "no:cacheprovider", "."),
        ("ruff", "check", "--no-cache", "--isolated", "--line-length", "120", "--config", "src = ['my-*']", "."),
        ("ruff", "format", "--no-cache", "--check", "--isolated", "--line-length", "120", "."),
    ):
        command = [sys.executable, "-m", tool, *arguments]
        ended = subprocess.run(command, cwd=packages, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert tool != "pytest" or f"{2 * len(STARTS)} passed" in ended.stdout


def test_every_extension_point_of_kube_scheduler_has_a_start() -> None:
    assert [point.replace("-", "") for point in POINTS] == [point.lower() for point in EXTENSION_POINTS]


def test_the_packages_entry_point_names_the_plugin(tmp_path: Path) -> None:
    import tomllib

    made("plugin", "few-pods", into=tmp_path)
    project = tomllib.loads((tmp_path / "few-pods" / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["policyengine.plugins"] == {"FewPods": "few_pods:ENTRY"}
    assert (plugin_name("few-pods"), module_name("few-pods")) == ("FewPods", "few_pods")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["policy", "Großes"], "no name"),
        (["policy", "../up"], "no name"),
        (["policy", "a" * 64], "no name"),
        (["policy", "default-scheduler"], "`default-scheduler` is served by kube-scheduler"),
        (["plugin", "node-name"], "in tree"),
        (["plugin", "class"], "no module of a package can be called `class`"),
        (["plugin", "json"], "no module of a package can be called `json`"),
        (["plugin", "numpy"], "no module of a package can be called `numpy`"),
    ],
)
def test_what_cannot_be_made_is_told_and_nothing_is_made(arguments: list[str], told: str, tmp_path: Path) -> None:
    ended = CliRunner().invoke(new, [*arguments, "--into", str(tmp_path)])
    assert ended.exit_code == 2
    assert told in ended.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["policy", "plugin"])
def test_nothing_that_exists_is_written_over(kind: str, tmp_path: Path) -> None:
    made(kind, "mine", into=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ended = CliRunner().invoke(new, [kind, "mine", "--into", str(tmp_path)])
    assert ended.exit_code == 2
    assert "exists already" in ended.output
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
