"""The fuzz target takes what it starts from, and bytes that are no text."""

from __future__ import annotations

import random

from tests.fuzz.front_end import one_input, seeds


def test_every_text_to_start_from_is_taken() -> None:
    texts = seeds()
    assert len(texts) > 50
    for raw in texts:
        one_input(raw)


def test_damaged_texts_are_taken() -> None:
    texts = sorted(seeds())
    chance = random.Random(7)
    for _ in range(60):
        raw = bytearray(chance.choice(texts))
        for _ in range(chance.randrange(1, 8)):
            at = chance.randrange(len(raw))
            raw[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(3))
        one_input(bytes(raw))
