"""Puts what Lark makes of the grammar into the wheel, so that no process has to analyse the grammar."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GrammarCache(BuildHookInterface):
    """Writes the parser's cache beside the grammar, for the Python that builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before anything is packed."""
        sys.path.insert(0, str(Path(self.root)))
        from policyengine.language.parsing.grammar import parser

        parser()
