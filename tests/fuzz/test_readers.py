"""Every reader of files takes the text it starts from, and takes or refuses damaged ones."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.fuzz.readers import READERS, inputs, one_input


@pytest.mark.parametrize("reader", READERS)
def test_what_a_reader_starts_from_is_taken(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(READERS[reader][1])
    READERS[reader][0](path)


def test_damaged_files_are_taken_or_refused(tmp_path: Path) -> None:
    for reader, raw in islice(inputs(seed=7), 700):
        one_input(reader, raw, tmp_path)
