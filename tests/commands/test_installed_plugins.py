"""Plugins that Python packages bring through the entry point group `policyengine.plugins`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import ClassVar

import pytest

from policyengine.commands import installed_plugins
from policyengine.commands.installed_plugins import GROUP, installed_registry
from policyengine.commands.options import UnusableInput
from policyengine.language.diagnostics import Source
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_files
from tests.commands.process import policyengine
from tests.docs.even_nodes import EVEN_NODES


@dataclass
class Distribution:
    name: str


class Installed(EntryPoint):
    """An entry point of a package that is not really there."""

    entries: ClassVar[dict[str, object]] = {}
    dist = Distribution("example-plugins")  # type: ignore[assignment]

    def load(self) -> object:
        found = self.entries[self.value]
        if isinstance(found, Exception):
            raise found
        return found


def install(monkeypatch: pytest.MonkeyPatch, **plugins: object) -> None:
    Installed.entries = {f"example:{name}": entry for name, entry in plugins.items()}
    points = EntryPoints(Installed(name, f"example:{name}", GROUP) for name in plugins)
    monkeypatch.setattr(installed_plugins, "entry_points", lambda group: points.select(group=group))
    installed_registry.cache_clear()


@pytest.fixture(autouse=True)
def forgotten() -> object:
    yield
    installed_registry.cache_clear()


def test_without_packages_there_are_the_plugins_in_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert list(installed_registry()) == list(IN_TREE)


def test_an_installed_plugin_judges_where_a_policy_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, EvenNodes=EVEN_NODES)
    registry = installed_registry()
    used, plain = (
        compile_files([Source("p", f'policy "p" {{ {use} }}')], None, registry)
        for use in ("use EvenNodes weight 3 { allowed: [0, 2] }", "")
    )
    assert not used.diagnostics and not plain.diagnostics
    assert ("EvenNodes", 3) in [(plugin.name, weight) for plugin, weight in used.profiles[0].scores]
    assert used.profiles[0].filters[-1].name == "EvenNodes"
    assert all(plugin.name != "EvenNodes" for plugin in plain.profiles[0].filters)


def test_its_arguments_are_checked_against_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, EvenNodes=EVEN_NODES)
    text = 'policy "p" { use EvenNodes { allowed: "two" } }'
    (finding,) = compile_files([Source("p", text)], None, installed_registry()).diagnostics
    assert finding.code == "PE2004"


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("NodeName", EVEN_NODES, "brings a plugin called `NodeName`, which is the name of one in tree"),
        ("Even", EVEN_NODES, "calls itself `EvenNodes`; the two names must be one"),
        ("EvenNodes", object, "is no `PluginEntry`"),
        ("EvenNodes", ImportError("no module named `x`"), "cannot be loaded: no module named `x`"),
    ],
)
def test_a_plugin_that_cannot_be_had_names_its_package(
    monkeypatch: pytest.MonkeyPatch, name: str, entry: object, message: str
) -> None:
    install(monkeypatch, **{name: entry})
    with pytest.raises(UnusableInput) as refused:
        installed_registry()
    assert "`example-plugins`" in str(refused.value) and message in str(refused.value)


def test_the_command_line_finds_plugins_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brought.py").write_text("from tests.docs.even_nodes import EVEN_NODES\n")
    info = tmp_path / "brought-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nEvenNodes = brought:EVEN_NODES\n")
    (tmp_path / "p.policy").write_text('policy "p" { use EvenNodes { allowed: [0] } }\n')
    (tmp_path / "cluster.json").write_text('{"nodes": [], "pending": []}')
    where = ("--alone", "--cluster", tmp_path / "cluster.json", "--policy", tmp_path / "p.policy")
    linted = ("lint", "--fail-level", "error", tmp_path / "p.policy")
    missing = policyengine("explain", *where)
    assert missing.code == 2 and "no plugin is called `EvenNodes`" in missing.err
    missing = policyengine(*linted)
    assert missing.code == 1 and "no plugin is called `EvenNodes`" in missing.out
    monkeypatch.syspath_prepend(tmp_path)
    installed_registry.cache_clear()
    assert policyengine("explain", *where).code == 0
    assert policyengine(*linted).code == 0
