"""The limits that docs/security.md states are those of the code, and what it says of a policy's text holds.

Its other promises stand in `promises.yaml`."""

import ast
from pathlib import Path

import pytest

from policyengine.kube import limited_process
from policyengine.kube.http import aiohttp_transport
from policyengine.kube.policies import proving, reload
from policyengine.language.parsing.expression_actions import MAX_DEPTH
from policyengine.language.parsing.member_parser import MAX_TEXT
from policyengine.scheduler import conditions_and_events
from policyengine.server.extender import app
from policyengine.trials import policy_test

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text()
MIB = 1 << 20


@pytest.mark.parametrize(
    ("said", "limit", "unit"),
    [
        ("| text of a file | 1 MiB |", MAX_TEXT, MIB),
        ("| nesting | 64 levels |", MAX_DEPTH, 1),
        ("| a test | 20,000 messages |", policy_test.STEPS, 1),
        ("to compile and test it | 2 s (`policies.cpuLimit`)", proving.CPU_SECONDS, 1),
        ("to compile and test it | 128 MiB |", limited_process.MEMORY, MIB),
        ("about 3 s after the first list", reload.SETTLING, 1),
        ("16 MiB a line or answer", aiohttp_transport.MAX_LINE, MIB),
        ("16 MiB a line or answer", aiohttp_transport.MAX_ANSWER, MIB),
        ("64 MiB a body", app.MAX_BODY, MIB),
        ("| a refusal's text in events | 1,024 characters |", conditions_and_events.NOTE_LIMIT, 1),
    ],
)
def test_a_limit_is_the_codes(said: str, limit: int, unit: int) -> None:
    assert said in PAGE
    assert f"{limit / unit:,g}" in said


CORE = ("language", "cluster", "framework", "compiler", "plugins", "scheduler")


@pytest.mark.parametrize("room", CORE)
def test_what_compiles_and_decides_evaluates_imports_and_opens_nothing(room: str) -> None:
    forbidden = {"eval", "exec", "compile", "open", "__import__"}
    for path in (Path(proving.__file__).parents[2] / room).rglob("*.py"):
        calls = [one.func for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Call)]
        assert not {one.id for one in calls if isinstance(one, ast.Name)} & forbidden, path
