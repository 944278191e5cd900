"""The front end of the language: parse, check, lint, format. No bytes may raise; see `guided`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from policyengine.compiler.front import checked
from policyengine.language.diagnostics import render
from policyengine.language.format import format_source
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.linter import lint
from policyengine.language.parse import SourceError, decode_source
from policyengine.plugins.facts import plugin_facts
from tests.fuzz.guided import Target

ROOT = Path(__file__).resolve().parents[2]


def one_input(raw: bytes) -> None:
    """Everything that is done with a text before it decides anything."""
    try:
        source = decode_source(raw, "fuzz.policy")
    except SourceError:
        return
    found = checked([source], plugin_facts())
    opinions = lint(source, found.trees[0], found.policies, plugin_facts(), Settings())
    render([*found.findings, *opinions], source)
    format_source(source)


def seeds() -> list[bytes]:
    """Every policy and every case of a lint rule."""
    files = [*(ROOT / "policies").glob("*.policy"), *(ROOT / "tests" / "language" / "lint").glob("PE*.md")]
    return [file.read_bytes()[:4096] for file in files]


def damaged(raw: bytes, seed: int) -> bytes:
    """Some bytes left out, and others put in."""
    chance, found = random.Random(seed), bytearray(raw)
    for _ in range(chance.randrange(1, 8)):
        at = chance.randrange(len(found) + 1)
        found[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(3))
    return bytes(found)


@contextmanager
def target(name: str) -> Iterator[Target]:
    """The front end."""
    yield Target(one_input, seeds(), damaged)
