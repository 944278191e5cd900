"""What the server is told from outside: which plugins there are, what a project settles, how texts lie in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from policyengine.language.checking.plugin_checks import Plugins
from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.parse import SourceError
from policyengine.language.syntax import Span


class PolicyText(Protocol):
    """One policy text, and where it stands: `shown` is the file as the user sees it."""

    @property
    def source(self) -> Source:
        """The text, under a name that no other text has."""

    @property
    def shown(self) -> Source:
        """The file."""

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each line of the text begins in the file; empty where the text is the file."""

    @property
    def folded(self) -> bool:
        """Whether the lines do not stand in the file one by one."""

    @property
    def holder(self) -> int:
        """Where in the file the ConfigMap begins that holds the text."""

    def placed(self, diagnostic: Diagnostic) -> Diagnostic:
        """The finding at its place in the file."""

    def shown_span(self, span: Span) -> Span:
        """A place of the text in the file."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The parts of the toolchain that know files and packages."""

    plugins: Plugins
    """Every plugin that a policy may name."""
    texts_in: Callable[[str, str], Sequence[PolicyText | SourceError]]
    """The policy texts of a file: of its path and what stands in it. Raises SourceError for what is no plain YAML."""
    settings_for: Callable[[Path], Settings]
    """Lint's settings in a folder. Raises SettingsError."""
    pages: Callable[[], Mapping[str, tuple[str, str]]]
    """The code of every finding -> its title and its page."""
