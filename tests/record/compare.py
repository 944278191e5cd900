"""Comparing two recordings call by call; what the servers chose themselves is mapped, not compared."""

from typing import Any

from tests.simulator.api_server.recorded import Mapping, differences


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
