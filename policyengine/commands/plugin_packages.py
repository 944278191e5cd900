"""Whether Python packages bring plugins at all: most bring none, and need no `importlib.metadata`."""

from __future__ import annotations

import sys
from pathlib import Path

GROUP = "policyengine.plugins"
"""The entry point group in which a package names its plugins."""


def packages_bring_plugins() -> bool:
    """Whether the entry points of a package on the path name the group of plugins.

    `importlib.metadata` knows it, and takes longer to import than a policy to lint: it is asked for the plugins only.
    """
    files = (file for folder in sys.path for file in Path(folder).glob("*-info/entry_points.txt"))
    return any(map(_names_the_group, files))


def _names_the_group(file: Path) -> bool:
    try:
        return GROUP.encode() in file.read_bytes()
    except OSError:
        return False  # nor would `importlib.metadata` read it
