"""The values of scalar expressions: plain Python where that says enough, small classes where it does not.

bool, int, float, str, None, list and dict are themselves. Durations, timestamps and quantities are ints in their
grain (nanoseconds, millicores, bytes): the checker knows what they are. Where nothing was checked
(`policyengine.evaluate`) the same ints carry their kind as a class, so one function table serves both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from policyengine import quantity
from policyengine.language.schema import QOS_CLASSES
from policyengine.language.types import QOS, Kind, Type

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
NANOSECONDS |= {"m": NANOSECONDS["min"], "h": 3600 * 10**9, "d": 86400 * 10**9}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EvaluationError(Exception):
    """An expression has no value: overflow, division by zero, no such key. A sentence in lower case."""


class Duration(int):
    """A span of time in nanoseconds."""


class Timestamp(int):
    """A moment: nanoseconds since 1970-01-01T00:00:00Z."""


class Cpu(int):
    """Millicores."""


class Memory(int):
    """Bytes of memory."""


class Storage(int):
    """Bytes of ephemeral storage."""


CLASSES: Mapping[Kind, type[int]] = {
    Kind.DURATION: Duration,
    Kind.TIMESTAMP: Timestamp,
    Kind.CPU: Cpu,
    Kind.MEMORY: Memory,
    Kind.STORAGE: Storage,
}
_KIND_OF: Mapping[type, Kind] = {
    **{class_: kind for kind, class_ in CLASSES.items()},
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.DOUBLE,
    str: Kind.STRING,
    list: Kind.LIST,
    tuple: Kind.LIST,
    dict: Kind.MAP,
    type(None): Kind.NULL,
}


@dataclass(frozen=True, slots=True)
class TypeValue:
    """What `type(x)` answers: a type, by CEL's name for it. `policyengine.evaluate` only."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent. `Optional(v)` holds v, which may be None; `NONE` holds nothing."""

    content: object
    present: bool = True


NONE = Optional(None, present=False)


def optional(value: object) -> Optional:
    """An optional of a value that is None where there is none."""
    return NONE if value is None else Optional(value)


class BoolKey(Enum):
    """A bool as a map key: in Python `True == 1`, in CEL `{true: …}` and `{1: …}` differ."""

    FALSE = False
    TRUE = True


def to_key(value: object) -> object:
    """How a map holds a key."""
    return BoolKey(value) if isinstance(value, bool) else value


def from_key(key: object) -> object:
    """The value a map's key stands for."""
    return key.value if isinstance(key, BoolKey) else key


def elements(value: object) -> Iterator[object]:
    """What a macro runs over: the items of a list, the keys of a map. Raises EvaluationError: the value is neither."""
    if isinstance(value, Mapping):
        return map(from_key, value)
    if isinstance(value, list | tuple):
        return iter(value)
    raise EvaluationError("a macro runs over a list or a map")


_PLAIN_KINDS = (Kind.BOOL, Kind.INT, Kind.DOUBLE, Kind.STRING, Kind.LIST, Kind.MAP, Kind.NULL, Kind.TYPE)
TYPE_VALUES: Mapping[Kind, TypeValue] = {
    **{kind: TypeValue(kind.value) for kind in _PLAIN_KINDS},
    Kind.DURATION: TypeValue("google.protobuf.Duration"),
    Kind.TIMESTAMP: TypeValue("google.protobuf.Timestamp"),
    Kind.OPTIONAL: TypeValue("optional_type"),
}
"""The types of plain values."""
TYPE_NAMES: Mapping[str, TypeValue] = {type_.name: type_ for type_ in TYPE_VALUES.values()}


def type_of(value: object) -> TypeValue:
    """`type(x)`. Raises EvaluationError: the value is of a type CEL does not have."""
    if isinstance(value, TypeValue):
        return TYPE_VALUES[Kind.TYPE]
    found = TYPE_VALUES.get(kind_of(value))
    if found is None:
        raise EvaluationError("a quantity has no type in CEL")
    return found


def kind_of(value: object) -> Kind:
    """The kind of a value that carries it (dynamic evaluation)."""
    kind = _KIND_OF.get(type(value))
    if kind is None:
        if isinstance(value, TypeValue):
            return Kind.TYPE
        return Kind.OPTIONAL if isinstance(value, Optional) else Kind.MAP if isinstance(value, Mapping) else Kind.DYN
    return kind


def box(type_: Type, value: object) -> object:
    """The value carrying its kind, as dynamic evaluation wants it. An optional's None is the empty optional."""
    if type_.kind is Kind.OPTIONAL and not isinstance(value, Optional):
        return NONE if value is None else Optional(box(type_.args[0], value))
    class_ = CLASSES.get(type_.kind)
    return class_(value) if class_ is not None and isinstance(value, int) else value


_DURATION = re.compile(r"([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+|0)", re.ASCII)
_DURATION_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:[0-5]\d)", re.ASCII)
_LONGEST = 64


@lru_cache(maxsize=4096)
def parse_duration(text: str) -> int:
    """`1h30m`, `1.5s`, `-250ms` as nanoseconds: Go's grammar, as CEL's `duration()` takes it. Raises EvaluationError:
    the text is no duration, or one beyond 292 years."""
    match = _DURATION.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise EvaluationError(f"`{shortened(text)}` is not a duration; write `90s` or `1h30m`")
    total = sum(Fraction(number) * NANOSECONDS[unit] for number, unit in _DURATION_PART.findall(match[2]))
    return in_int64(int(-total if match[1] == "-" else total))


@lru_cache(maxsize=4096)
def parse_timestamp(text: str) -> int:
    """An RFC 3339 time as nanoseconds since 1970. Raises EvaluationError: the text is no such time, or one that
    nanoseconds in 64 bits do not reach (1677 to 2262)."""
    match = _TIMESTAMP.fullmatch(text) if len(text) <= _LONGEST else None
    try:
        if match is None:
            raise ValueError
        date, time, fraction, zone = match.groups()
        moment = datetime.fromisoformat(f"{date}T{time}{zone.upper()}")
    except ValueError:
        raise EvaluationError(f"`{shortened(text)}` is not a time; write it as `2026-01-05T18:30:00+01:00`") from None
    nanoseconds = (moment - _EPOCH) // timedelta(seconds=1) * 10**9 + int((fraction or "").ljust(9, "0"))
    if not INT64_MIN <= nanoseconds <= INT64_MAX:
        raise EvaluationError(f"`{shortened(text)}` is out of range: times are from 1677-09-21 to 2262-04-11")
    return nanoseconds


def format_duration(nanoseconds: int) -> str:
    """Seconds, as CEL's `string(duration)` writes them: `90s`, `0.25s`."""
    sign = "-" if nanoseconds < 0 else ""
    seconds, rest = divmod(abs(nanoseconds), 10**9)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{sign}{seconds}{fraction}s"


def format_timestamp(nanoseconds: int) -> str:
    """RFC 3339 in UTC: `2026-01-05T17:30:00Z`."""
    seconds, rest = divmod(nanoseconds, 10**9)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z".rjust(20, "0")


def format_double(value: float) -> str:
    """The shortest text that reads back the same: `4.5`, `100`, from 21 digits on `1e+21`."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    number = Decimal(repr(value)).normalize()
    place = number.adjusted()
    return f"{number:f}" if -4 <= place < 21 else f"{number.scaleb(-place)}e{place:+03d}"


def display(value: object, type_: Type) -> str:
    """A value as templates, `string()` and messages show it.

    >>> display(1500, CPU), display(2**31, MEMORY), display(90 * 10**9, DURATION)
    ('1500m', '2Gi', '90s')
    """
    if isinstance(value, Optional):
        value = value.content if value.present else None
    if type_.kind is Kind.OPTIONAL:
        return "none" if value is None else display(value, type_.args[0])
    if type_ == QOS and isinstance(value, int):
        return QOS_CLASSES[value]
    if isinstance(value, str) or value is None:
        return "null" if value is None else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_double(value)
    if isinstance(value, int):
        return _NUMBERS.get(type_.kind, str)(value)
    return _display_many(value, type_)


def _display_many(value: object, type_: Type) -> str:
    if isinstance(value, Mapping) and type_.kind is Kind.MAP:
        key, content = type_.args
        pairs = (f"{display(from_key(k), key)}: {display(v, content)}" for k, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple) and type_.kind is Kind.LIST:
        return f"[{', '.join(display(item, type_.args[0]) for item in value)}]"
    return str(type_)


_NUMBERS = {
    Kind.CPU: quantity.format_cpu,
    Kind.MEMORY: quantity.format_bytes,
    Kind.STORAGE: quantity.format_bytes,
    Kind.DURATION: format_duration,
    Kind.TIMESTAMP: format_timestamp,
}


def in_int64(value: int) -> int:
    """The value, if 64 bits hold it. Raises EvaluationError: they do not."""
    if INT64_MIN <= value <= INT64_MAX:
        return value
    raise EvaluationError("integer overflow")


def with_article(noun: object) -> str:
    """`a string`, `an int`, for messages.

    >>> with_article("int"), with_article("uint")
    ('an int', 'a uint')
    """
    return f"{'an' if str(noun)[:1] in 'aeio' else 'a'} {noun}"


def shortened(text: str) -> str:
    """Text from outside for a message, cut to a bearable length."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
