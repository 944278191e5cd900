"""Positions count lines as LSP does and columns in UTF-16 code units."""

from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position

from policyengine.server.language_server.documents import Lines

TEXTS = st.text(st.sampled_from("ab\n\r\t\f\u2028é\U0001f600\U00010348"), max_size=40)


def naive(text: str, offset: int) -> Position:
    """Counted character by character."""
    line = column = at = 0
    while at < offset:
        if text.startswith("\r\n", at):
            if offset == at + 1:
                return Position(line, column + 1)
            line, column, at = line + 1, 0, at + 2
        elif text[at] in "\r\n":
            line, column, at = line + 1, 0, at + 1
        else:
            column, at = column + len(text[at].encode("utf-16-le")) // 2, at + 1
    return Position(line, column)


@given(TEXTS, st.integers(0, 40))
def test_a_position_counts_lines_and_code_units(text: str, offset: int):
    offset = min(offset, len(text))
    assert Lines(text).position(offset) == naive(text, offset)


@given(TEXTS, st.integers(0, 40))
def test_an_offset_comes_back_from_its_position(text: str, offset: int):
    offset = min(offset, len(text))
    if text[max(0, offset - 1) : offset + 1] != "\r\n":  # between the two there is no place
        assert Lines(text).offset(Lines(text).position(offset)) == offset


@given(TEXTS, st.integers(0, 60), st.integers(0, 60))
def test_any_position_is_a_place_of_the_text(text: str, line: int, column: int):
    assert 0 <= Lines(text).offset(Position(line, column)) <= len(text)


def test_a_character_beyond_the_first_plane_takes_two_columns():
    lines = Lines('x = "😀" + y')
    assert lines.position(6) == Position(0, 7)
    assert lines.offset(Position(0, 7)) == 6
    assert lines.offset(Position(0, 6)) == 5  # its middle is its beginning


def test_a_position_behind_the_end_of_a_line_is_that_end():
    assert Lines("ab\ncd").offset(Position(0, 99)) == 2
