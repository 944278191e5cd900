"""What lint is told of the plugins as data is what the registry says."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from policyengine import plugins
from policyengine.compiler.assemble import plugin_facts as facts_of
from policyengine.plugins.facts import FILE, generated, plugin_facts
from policyengine.plugins.registry import IN_TREE


def test_the_file_is_fresh() -> None:
    assert FILE.read_text(encoding="utf-8") == generated(), "run `python -m policyengine.plugins.facts`"
    assert plugin_facts() == facts_of(IN_TREE)
    assert list(plugin_facts()) == list(IN_TREE)


def test_every_class_that_is_a_plugin_is_in_the_registry() -> None:
    modules = [
        importlib.import_module(one.name) for one in pkgutil.walk_packages(plugins.__path__, "policyengine.plugins.")
    ]
    classes = [one for module in modules for one in vars(module).values() if isinstance(one, type)]
    plugins_found = [one for one in classes if isinstance(getattr(one, "name", None), str)]
    assert {one.name for one in plugins_found} == set(IN_TREE)


@pytest.mark.parametrize("name", IN_TREE)
def test_every_plugin_is_named_in_a_test(name: str) -> None:
    texts = [file.read_text(encoding="utf-8") for file in Path(__file__).parents[1].rglob("test_*.py")]
    assert any(name in text for text in texts)


@pytest.mark.parametrize(
    ("modules", "slow"),
    [
        (
            "policyengine.commands.linting.files, policyengine.commands.linting.formats",
            {"numpy", "aiohttp", "kubernetes", "yaml", "jsonschema"},
        ),
        ("policyengine.simulator.sandbox, policyengine.kube.policies.proving", {"kubernetes", "jsonschema"}),
        (
            "policyengine.commands.testing.report, policyengine.commands.testing.execution",
            {"aiohttp", "asyncio", "kubernetes", "yaml", "jsonschema", "rich", "xml", "policyengine.language.lint"},
        ),
    ],
)
def test_lint_tests_a_server_and_a_proof_import_nothing_that_takes_long(modules: str, slow: set[str]) -> None:
    code = f"import sys, {modules}\nprint(*sorted({slow} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "\n"
