"""Compares two recordings call by call: server-chosen values are mapped as they appear, all else has to be the same.

A value the server chose (uid, resourceVersion, continue, generated name, time) is matched with ours at its first
appearance; from then on each must stand where the other stood.
"""

import re
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
GENERATED = re.compile(r"[\w.-]+[bcdfghjklmnpqrstvwxz2456789]{5}")
_ECHO = re.compile(r'Invalid value: "\{\\?".*\}": ')
CHOSEN = frozenset({"uid", "resourceVersion", "continue"})
# What may differ by design, each with its reason.
DELIBERATE = {
    "managedFields": "times and the order of managers within one second are the server's own",
    "storageVersionHash": "an opaque hash that clients only compare with itself",
    "serverAddress": "the address this server listens on",
    "clusterIP": "out of the server's own range",
    "clusterIPs": "out of the server's own range",
}


class Mapping:
    """Recorded value -> our value, for those the server chose."""

    def __init__(self) -> None:
        self.ours: dict[str, str] = {}

    def learn(self, recorded: str, given: str) -> bool:
        """Note a pair; whether it agrees with what was noted before."""
        return self.ours.setdefault(recorded, given) == given

    def translate(self, text: str) -> str:
        """A recorded text (a path, a body) with our values in place of the recorded ones."""
        for recorded, given in sorted(self.ours.items(), key=lambda item: -len(item[0])):
            if len(recorded) > 4:
                text = text.replace(recorded, given)
        return text


def differences(recorded: Any, given: Any, mapping: Mapping, path: str = "") -> list[str]:
    """Where two answers differ, one line each."""
    key = path.rpartition(".")[2]
    if key in DELIBERATE:
        return [] if type(recorded) is type(given) else [f"{path}: recorded {recorded!r}, got {given!r}"]
    if isinstance(recorded, dict) and isinstance(given, dict):
        found = [f"{path}.{k}: missing" for k in recorded.keys() - given.keys()]
        found += [f"{path}.{k}: not in the recording ({given[k]!r})" for k in given.keys() - recorded.keys()]
        for name in recorded.keys() & given.keys():
            found += differences(recorded[name], given[name], mapping, f"{path}.{name}")
        return found
    if isinstance(recorded, list) and isinstance(given, list):
        if len(recorded) != len(given):
            return [f"{path}: {len(recorded)} items recorded, got {len(given)}"]
        return [
            line
            for at, (a, b) in enumerate(zip(recorded, given, strict=True))
            for line in differences(a, b, mapping, f"{path}[{at}]")
        ]
    if recorded == given:
        return []
    if isinstance(recorded, str) and isinstance(given, str) and _agree(recorded, given, key, mapping):
        return []
    return [f"{path}: recorded {recorded!r}, got {given!r}"]


def _agree(recorded: str, given: str, key: str, mapping: Mapping) -> bool:
    if TIME.fullmatch(recorded) and TIME.fullmatch(given):
        return True
    if key == "name":
        generated = bool(GENERATED.fullmatch(recorded) and GENERATED.fullmatch(given))
        return generated and recorded[:-5] == given[:-5] and mapping.learn(recorded, given)
    if key in CHOSEN:
        return mapping.learn(recorded, given)
    if key == "cells" or key.startswith("cells["):
        return bool(re.fullmatch(r"\d+[smh]", recorded) and re.fullmatch(r"\d+[smh]", given)) or (
            mapping.translate(recorded) == given
        )
    if _ECHO.search(recorded):
        # The patched object as each server writes it, in its own order of fields; what is said of it counts.
        return _ECHO.sub("", recorded) == _ECHO.sub("", given)
    # Messages quote what the server chose: uids, generated names, versions.
    return mapping.translate(recorded) == given or _words_agree(recorded, given, mapping)


def _words_agree(recorded: str, given: str, mapping: Mapping) -> bool:
    """Texts that differ only in words made of digits and random letters."""
    a, b = re.findall(r"[\w-]+(?:\.[\w-]+)*", recorded), re.findall(r"[\w-]+(?:\.[\w-]+)*", given)
    if len(a) != len(b) or re.sub(r"[\w.-]+", "", recorded) != re.sub(r"[\w.-]+", "", given):
        return False
    chosen = re.compile(r"\d+|[0-9a-f-]{36}|[\w-]*[-._][bcdfghjklmnpqrstvwxz2456789]{5}")
    return all(
        x == y or (bool(chosen.fullmatch(x)) and bool(chosen.fullmatch(y)) and mapping.learn(x, y))
        for x, y in zip(a, b, strict=True)
    )


def compare(recorded: list[dict[str, Any]], given: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Where `given` differs, by the call's name; empty where it answers as recorded."""
    mapping = Mapping()
    problems: dict[str, list[str]] = {}
    answers = {call["name"]: call for call in given}
    for call in recorded:
        other = answers.pop(call["name"], None)
        if other is None:
            problems[call["name"]] = ["was not made"]
            continue
        found = [
            line
            for part in ("response", "watch", "ends")
            if part in call or (part in other and part != "ends")
            for line in differences(call.get(part), other.get(part), mapping, part)
        ]
        if found:
            problems[call["name"]] = found
    for name in answers:
        problems[name] = ["is not in the recording"]
    return problems
