"""The fuzz target takes what it starts from, and bytes that are no text."""

from __future__ import annotations

import random
from pathlib import Path

from tests.fuzz.front_end import corpus, main, one_input


def test_every_text_to_start_from_is_taken(tmp_path: Path) -> None:
    corpus(tmp_path)
    texts = [file.read_bytes() for file in sorted(tmp_path.iterdir())]
    assert len(texts) > 50
    for raw in texts:
        one_input(raw)


def test_damaged_texts_are_taken(tmp_path: Path) -> None:
    corpus(tmp_path)
    texts = [file.read_bytes() for file in sorted(tmp_path.iterdir())]
    chance = random.Random(7)
    for _ in range(60):
        raw = bytearray(chance.choice(texts))
        for _ in range(chance.randrange(1, 8)):
            at = chance.randrange(len(raw))
            raw[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(3))
        one_input(bytes(raw))


def test_without_atheris_it_says_so_in_a_line(capsys: object, monkeypatch: object) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # type: ignore[attr-defined]
    assert main([]) == 0
    assert capsys.readouterr().out == "skipped: atheris is not installed (pip install atheris)\n"  # type: ignore[attr-defined]
