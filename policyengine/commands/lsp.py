"""`policyengine lsp`: the language server that editors start."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyengine.commands.options import UnusableInput

if TYPE_CHECKING:
    from policyengine.language.parse import SourceError
    from policyengine.language.policy_text import PolicyText
    from policyengine.server.language_server.documents import Toolchain

NEEDED = ("pygls", "lsprotocol", "cattrs")


@click.command()
@click.option("--stdio", is_flag=True, help="Speak on standard input and output. It is the only way; editors add it.")
def lsp(stdio: bool) -> None:
    """The language server for policy files, on standard input and output. Editors start it.

    Exit codes: 0 the editor is done; 2 the packages it needs are not installed.
    """
    if any(find_spec(name) is None for name in NEEDED):
        raise UnusableInput("the language server needs the extra `lsp`: pip install 'policyengine-scheduler[lsp]'")
    from policyengine.server.language_server.server import serve

    serve(toolchain())


def toolchain() -> Toolchain:
    """What the server is told of plugins, files, settings and pages."""
    from policyengine.commands.linting.explanations import pages
    from policyengine.commands.linting.files import known_plugins, settings_for
    from policyengine.server.language_server.documents import Toolchain

    return Toolchain(plugins=known_plugins(), texts_in=texts_in, settings_for=settings_for, pages=pages)


def texts_in(path: str, text: str) -> Sequence[PolicyText | SourceError]:
    """The policy texts of a file an editor holds; one that is no manifest is a policy, whatever it is called.

    Raises:
        SourceError: a manifest is no plain YAML.
    """
    from policyengine.commands.policy_files import MANIFESTS
    from policyengine.language.diagnostics import Source
    from policyengine.language.policy_text import PolicyText

    shown = Source(path, text)
    if Path(path).suffix not in MANIFESTS:
        return [PolicyText(shown, shown)]
    from policyengine.commands import manifests

    return manifests.texts_in(shown) if manifests.may_carry(text) else []
