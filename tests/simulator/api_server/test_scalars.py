import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine import quantity
from policyengine.simulator.api_server import scalars


@pytest.mark.parametrize(
    ("given_text", "canonical"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1000k", "1M"),
        ("128974848", "128974848"),
        ("1e3", "1e3"),
        ("12e6", "12e6"),
        ("1000e3", "1e6"),
        ("5E", "5E"),
        ("100u", "100u"),
        ("0", "0"),
        ("-1.5", "-1500m"),
        ("+2", "2"),
        (".5", "500m"),
        ("1.", "1"),
    ],
)
def test_quantities_are_written_back_as_the_real_server_writes_them(given_text: str, canonical: str) -> None:
    assert scalars.canonical_quantity(given_text) == canonical


units = st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E2"])


@given(st.integers(-(10**6), 10**6), units)
def test_a_canonical_quantity_has_the_same_value_and_stays_as_it_is(number: int, unit: str) -> None:
    text = scalars.canonical_quantity(f"{number}{unit}")
    assert quantity.parse(text) == quantity.parse(f"{number}{unit}")
    assert scalars.canonical_quantity(text) == text


@given(st.text(max_size=10))
def test_no_text_breaks_a_quantity(text: str) -> None:
    try:
        assert scalars.canonical_quantity(text)
    except scalars.ScalarError as error:
        assert str(error).startswith("quantities must match")


def test_times_are_brought_to_utc() -> None:
    assert scalars.canonical_time("2026-01-01T02:00:00+02:00") == "2026-01-01T00:00:00Z"
    assert scalars.canonical_time("2026-01-01T00:00:00.75Z") == "2026-01-01T00:00:00Z"
    assert scalars.canonical_micro_time("2026-01-01T02:00:00.123456+02:00") == "2026-01-01T00:00:00.123456Z"
    with pytest.raises(scalars.ScalarError, match=r'cannot parse "Z" as "\.000000"'):
        scalars.canonical_micro_time("2026-01-01T00:00:00Z")
    with pytest.raises(scalars.ScalarError, match='parsing time "yesterday"'):
        scalars.canonical_time("yesterday")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1.0), ("1m30s", 90.0), ("500ms", 0.5), ("1.5h", 5400.0), ("-2s", -2.0), ("0", 0.0), ("+1us", 1e-6)],
)
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    assert scalars.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("abc", 'time: invalid duration "abc"'),
        ("5", 'time: missing unit in duration "5"'),
        ("", "time: invalid"),
        ("2600000h", "time: invalid duration"),
        ("1h" * 33, "time: invalid duration"),
    ],
)
def test_what_is_no_duration_is_said_as_go_says_it(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        scalars.parse_duration(text)
