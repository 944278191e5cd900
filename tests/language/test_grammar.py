import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from policyengine.language.parsing import grammar
from policyengine.language.parsing.grammar import analysed, folder, kept

GRAMMAR = (folder() / "policy.lark").read_text()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A good cache of the grammar: one analysis for all tests."""
    place = tmp_path_factory.mktemp("grammar") / "policy.cache"
    kept(GRAMMAR, place)
    return place.read_bytes()


@pytest.fixture
def cache_file(good: bytes, tmp_path: Path) -> Path:
    """A file with it."""
    place = tmp_path / "policy.cache"
    place.write_bytes(good)
    place.chmod(0o600)
    return place


def serves(cache_file: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the cache file saves the analysis."""
    monkeypatch.setattr(grammar, "analysed", None)
    return bool(kept(GRAMMAR, cache_file).parse("a", start="expression"))


def test_the_grammar_is_lalr_without_a_conflict_and_no_two_terminals_collide() -> None:
    pytest.importorskip("interegular")
    made = analysed(GRAMMAR, strict=True)
    assert made.parse("a.b + f(1)[?x]", start="expression").data == "expression"


@pytest.mark.parametrize("mode", [0o644, 0o444, 0o600])
def test_a_cache_serves_wherever_it_is_moved_to(cache_file: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = cache_file.rename(cache_file.with_name("moved.cache"))
    moved.chmod(mode)
    assert serves(moved, monkeypatch)


def cut_short(whole: bytes) -> bytes:
    return whole[:-100]


def one_bit_turned(whole: bytes) -> bytes:
    return whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]


@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda _: b"no cache", lambda _: pickle.dumps({}), cut_short, one_bit_turned]
)
def test_a_damaged_cache_is_made_anew(cache_file: Path, damage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_file.write_bytes(damage(cache_file.read_bytes()))
    assert kept(GRAMMAR, cache_file).parse("a", start="expression")
    assert serves(cache_file, monkeypatch)


def test_the_cache_of_another_grammar_is_not_used(tmp_path: Path) -> None:
    kept(GRAMMAR.replace('"scheduler" STRING', '"scheduler" NAME'), tmp_path / "policy.cache")
    assert kept(GRAMMAR, tmp_path / "policy.cache").parse('scheduler "a"', start="scheduler")


@pytest.mark.parametrize("change", ["mode", "owner"])
def test_a_cache_that_somebody_else_may_have_written_is_not_read(
    cache_file: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if change == "mode":
        cache_file.chmod(0o666)
    else:
        found = list(cache_file.stat())
        found[4] = os.geteuid() + 1
        monkeypatch.setattr(os, "fstat", lambda _: os.stat_result(found))
    monkeypatch.setattr("lark.Lark.load", None)
    assert kept(GRAMMAR, cache_file).parse("a", start="expression")
    assert not cache_file.stat().st_mode & 0o022


@pytest.mark.parametrize("refused", ["missing", "read-only"])
def test_a_folder_that_cannot_be_written_to_costs_time_only(
    tmp_path: Path, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> int:
        raise PermissionError

    if refused == "read-only":  # root, as in CI, may write to any folder
        monkeypatch.setattr(os, "open", refuse)
    place = tmp_path / "policy.cache" if refused == "read-only" else tmp_path / "missing" / "policy.cache"
    assert kept(GRAMMAR, place).parse("a", start="expression")
    assert list(tmp_path.iterdir()) == []


def test_processes_that_write_the_cache_at_once_leave_one_good_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "policy.cache"
    code = (
        "import sys; from pathlib import Path; from policyengine.language.parsing.grammar import folder, kept\n"
        "made = kept((folder() / 'policy.lark').read_text(), Path(sys.argv[1])).parse('a', start='expression')"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(place)]) for _ in range(2)]
    assert [process.wait(60) for process in running] == [0, 0]
    assert list(tmp_path.iterdir()) == [place]
    assert serves(place, monkeypatch)
