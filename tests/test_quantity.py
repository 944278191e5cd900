from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine import quantity
from policyengine.quantity import QuantityError

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
EXPONENTS = {f"{letter}{power}": power for letter in "eE" for power in range(-12, 13)}
SUFFIXES = {
    **{suffix: Fraction(10) ** power for suffix, power in (DECIMAL | EXPONENTS).items()},
    **{suffix: Fraction(1024) ** power for suffix, power in BINARY.items()},
}


def naive(sign: str, whole: str, fraction: str, suffix: str) -> Fraction:
    """The documentation's definition, with nothing clever in it."""
    exact = Fraction(f"{whole or 0}.{fraction or 0}") * SUFFIXES[suffix]
    grain = Fraction(ceil(exact * 10**9), 10**9)
    if suffix in BINARY:
        grain = min(grain, Fraction(2**63 - 1))
    return -grain if sign == "-" else grain


digits = st.text("0123456789", max_size=14)
parts = st.tuples(
    st.sampled_from(["", "+", "-"]), digits, digits, st.booleans(), st.sampled_from(sorted(SUFFIXES))
).filter(lambda drawn: drawn[1] or drawn[2])


@given(parts)
def test_parse_agrees_with_the_naive_definition(drawn):
    sign, whole, fraction, dotted, suffix = drawn
    text = f"{sign}{whole}" + (f".{fraction}" if fraction or dotted else "") + suffix
    expected = naive(sign, whole, fraction, suffix)
    assert quantity.parse(text) == expected
    for function, unit in ((quantity.value, 1), (quantity.milli_value, 1000)):
        size = min(ceil(abs(expected) * unit), 2**63 - 1)
        assert function(text) == (size if expected >= 0 else -size)


@given(st.text(max_size=12) | st.text("0123456789.+-eEinumkKMGTP", max_size=12))
def test_any_text_is_parsed_or_refused_with_its_own_words(text):
    try:
        quantity.parse(text)
    except QuantityError as error:
        assert f"`{text}`" in str(error)


NOT_QUANTITIES = [
    *["", " ", "1 ", " 1", "abc", "1.2.3", "1i", "1mi", "1KI", "1K", "e3", "1e", "1e+", "--1", "1_000", "٣"],
    *["1e1e1", "m", ".", "+", "Ki", "1Zi", "0x10", "inf", "nan", "1\n", "9" * 65],
]


@pytest.mark.parametrize("text", NOT_QUANTITIES)
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(QuantityError):
        quantity.parse(text)


MILLICORES = {
    "1e-400000000": 1,
    "1e400000000": 2**63 - 1,
    1: 1000,
    0.5: 500,
    0: 0,
}


@pytest.mark.parametrize(("text", "milli"), MILLICORES.items())
def test_millicores(text, milli):
    assert quantity.milli_value(text) == milli


def test_a_boolean_is_no_quantity():
    with pytest.raises(QuantityError):
        quantity.parse(True)


@pytest.mark.parametrize(
    ("milli", "text"), [(0, "0"), (250, "250m"), (1000, "1"), (1500, "1500m"), (2_000_000, "2k"), (-500, "-500m")]
)
def test_cpu_is_written_canonically(milli, text):
    assert quantity.format_cpu(milli) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (1000, "1k"), (1023, "1023"), (1024, "1Ki"), (1536, "1536"), (2**31, "2Gi"), (3 * 2**29, "1536Mi")],
)
def test_bytes_are_written_canonically(number, text):
    assert quantity.format_bytes(number) == text


@given(st.integers(-(2**62), 2**62))
def test_what_is_written_reads_back(number):
    assert quantity.value(quantity.format_bytes(number)) == number
    assert quantity.value(quantity.format_count(number)) == number
    assert quantity.parse(quantity.format_cpu(number)) == Fraction(number, 1000)
