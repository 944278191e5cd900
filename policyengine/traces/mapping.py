"""Tables of comma-separated values as traces, by a YAML file that says what their columns mean (`mapping.schema.json`).

    start: 2026-01-05T00:00:00Z
    nodes: {count: 20, name: node, allocatable: {cpu: {value: 16}, memory: {value: 64Gi}}}
    pods:
      file: 1
      name: {column: job}
      at: {column: submitted}
      started: {column: begun}
      runs: {column: seconds}
      requests: {cpu: {column: cores}, memory: {column: mem_mib, unit: Mi}}

`file` is the number of the table on the command line. A row without a time of `started` never ran.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TextIO

from policyengine import quantity
from policyengine.checked_yaml import CheckedYaml, CheckedYamlError
from policyengine.traces.writing import TraceError, TraceNode, TracePod

Row = Mapping[str, str]
Said = Mapping[str, Any]
_GZIP = b"\x1f\x8b"


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of mappings."""
    found: dict[str, Any] = json.loads(
        files("policyengine.traces").joinpath("mapping.schema.json").read_text(encoding="utf-8")
    )
    return found


def read(text: str, name: str) -> Said:
    """A mapping. Raises `TraceError`, a line for each mistake."""
    try:
        return CheckedYaml(text, schema()).data
    except CheckedYamlError as error:
        raise TraceError("\n".join(f"`{name}`: {sentence}" for sentence in error.sentences)) from None


def openb() -> Said:
    """The mapping of Alibaba's traces of GPU clusters (cluster-trace-gpu-v2023): nodes, then pods."""
    return read(files("policyengine.traces").joinpath("openb.yaml").read_text(encoding="utf-8"), "openb.yaml")


def start_of(mapping: Said) -> float:
    """Seconds since the epoch; in UTC unless it says otherwise. Raises `TraceError`."""
    try:
        start = datetime.fromisoformat(mapping.get("start", "2026-01-05T00:00:00Z"))
        return (start if start.tzinfo else start.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise TraceError(f"`start` is `{mapping['start']}`; write it as 2026-01-05T00:00:00Z") from None


def nodes_of(mapping: Said, tables: Sequence[Path]) -> Iterator[TraceNode]:
    """Raises `TraceError`, `OSError`."""
    said = mapping["nodes"]
    if "count" in said:
        row: Row = {}
        for number in range(said["count"]):
            yield TraceNode(f"{said['name']}-{number}", _amounts(said["allocatable"], row, "nodes"), {})
        return
    for row, where in _rows(said, tables):
        labels = _texts(said.get("labels", {}), row, where)
        yield TraceNode(_text(said["name"], row, where), _amounts(said["allocatable"], row, where), labels)


def pods_of(mapping: Said, tables: Sequence[Path]) -> Iterator[TracePod]:
    """Raises `TraceError`, `OSError`."""
    said = mapping["pods"]
    for row, where in _rows(said, tables):
        at = _number(said["at"], row, where)
        started = _number(said["started"], row, where) if "started" in said else at
        if at is None:
            raise TraceError(f"{where}: there is no time at which the pod came")
        ended = None
        if started is not None and "runs" in said:
            runs = _number(said["runs"], row, where)
            ended = None if runs is None else started + runs
        elif started is not None and "ended" in said:
            ended = _number(said["ended"], row, where)
        yield TracePod(
            _text(said["name"], row, where),
            at,
            _amounts(said["requests"], row, where),
            started,
            ended,
            (_text(said["namespace"], row, where) if "namespace" in said else "") or "default",
            int(_number(said["priority"], row, where) or 0) if "priority" in said else 0,
            _texts(said.get("labels", {}), row, where),
            {key: text.split("|") for key, text in _texts(said.get("on", {}), row, where).items()},
        )


def _rows(said: Said, tables: Sequence[Path]) -> Iterator[tuple[Row, str]]:
    """Each row, and where it stands."""
    number = said["file"]
    if number > len(tables):
        raise TraceError(f"the mapping reads table {number}, and {len(tables)} were given")
    path = tables[number - 1]
    with opened(path) as file:
        reader = csv.DictReader(file)
        try:
            if not reader.fieldnames:
                raise TraceError(f"{path.name} is empty, or a pipe that was read already for the nodes")
            for row in reader:
                yield row, f"{path.name}, line {reader.line_num}"
        except (csv.Error, UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
            raise TraceError(f"{path.name}, behind line {reader.line_num}: {error}") from None


def opened(path: Path, errors: str = "strict") -> TextIO:
    """A text file, which may be compressed with gzip, and begin with a byte order mark. `errors`: as `open` has it."""
    file = path.open("rb")
    if file.peek(2)[:2] == _GZIP:
        return io.TextIOWrapper(gzip.GzipFile(fileobj=file), encoding="utf-8-sig", errors=errors, newline="")
    return io.TextIOWrapper(file, encoding="utf-8-sig", errors=errors, newline="")


def _text(said: Said, row: Row, where: str) -> str:
    if "value" in said:
        return str(said["value"])
    found = row.get(said["column"])
    if found is None:
        raise TraceError(f"{where}: there is no column `{said['column']}`; there are {', '.join(map(str, row))}")
    return found.strip()


def _texts(said: Mapping[str, Said], row: Row, where: str) -> dict[str, str]:
    """Those that are not empty."""
    found = {key: _text(one, row, where) for key, one in said.items()}
    return {key: text for key, text in found.items() if text}


def _number(said: Said, row: Row, where: str) -> float | None:
    """None where the cell is empty."""
    text = _text(said, row, where)
    if not text:
        return None
    try:
        number = float(text) * float(said.get("factor", 1))
        if "times" in said:
            number *= float(_text({"column": said["times"]}, row, where))
        if math.isfinite(number):
            return number
    except ValueError:
        pass
    raise TraceError(f"{where}: `{text}` in column `{said.get('column')}` is no number")


def _amounts(said: Mapping[str, Said], row: Row, where: str) -> dict[str, str]:
    """Resource -> a quantity; those that are nothing are left out."""
    found = {}
    for name, one in said.items():
        if "value" in one:
            found[name] = _quantity(one["value"], f"{where}: {name}")
            continue
        number = _number(one, row, where)
        if number is not None and number < 0:
            raise TraceError(f"{where}: {name} is less than nothing")
        if number:
            unit = one.get("unit", "")
            found[name] = f"{number:.0f}{unit}" if number == int(number) else f"{number:.6f}{unit}"
    return found


def _quantity(said: quantity.Scalar, where: str) -> str:
    """As it is written. Raises `TraceError`."""
    try:
        if quantity.nanos(said) >= 0:
            return str(said)
    except quantity.QuantityError as error:
        raise TraceError(f"{where}: {error}") from None
    raise TraceError(f"{where} is less than nothing")
