"""What lint is told of the plugins as data is what the registry says."""

from __future__ import annotations

import subprocess
import sys

from policyengine.compiler.assemble import plugin_facts as facts_of
from policyengine.plugins.facts import FILE, generated, plugin_facts
from policyengine.plugins.registry import IN_TREE


def test_the_file_is_fresh() -> None:
    assert FILE.read_text(encoding="utf-8") == generated(), "run `python -m policyengine.plugins.facts`"
    assert plugin_facts() == facts_of(IN_TREE)
    assert list(plugin_facts()) == list(IN_TREE)


def test_lint_imports_nothing_that_takes_long() -> None:
    code = (
        "import sys, policyengine.commands.lint_files, policyengine.commands.lint_formats.text\n"
        "print(*sorted({'numpy', 'aiohttp', 'kubernetes', 'yaml', 'jsonschema'}"
        " & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "\n"
