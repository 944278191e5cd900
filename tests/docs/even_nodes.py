"""The plugin of docs/python-plugins.md, as the page shows it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from policyengine.framework.plugin_entry import PluginEntry

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "python-plugins.md").read_text()


def shown(language: str) -> str:
    """The page's one block in a language."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return str(block)


_module: dict[str, Any] = {"__name__": "even_nodes"}
exec(compile(shown("python"), "even_nodes.py", "exec"), _module)
EVEN_NODES: PluginEntry = _module["EVEN_NODES"]
