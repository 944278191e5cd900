"""docs/simulate.md: its scenario plays, and it names every option, field, change and expectation there is."""

from __future__ import annotations

import re
from typing import Any

from policyengine.commands.simulate import simulate
from policyengine.trials.simulation import Simulation, schema
from tests.commands.process import ROOT

TEXT = (ROOT / "docs/simulate.md").read_text(encoding="utf-8")


def keys_of(name: str) -> set[str]:
    form: dict[str, Any] = schema()["$defs"][name]
    return {key for one in (form, *form.get("oneOf", ())) for key in one.get("properties", {})}


def test_the_scenario_comes_true() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    outcome = Simulation(text).run()
    assert outcome.verdicts
    assert outcome.passed, outcome.verdicts


def test_every_option_is_named() -> None:
    options = [option for parameter in simulate.params for option in parameter.opts if option.startswith("--")]
    assert [option for option in options if option != "--output" and option not in TEXT] == []


def test_every_key_is_named() -> None:
    keys = {*schema()["properties"], *keys_of("node"), *keys_of("pod"), *keys_of("change"), *keys_of("expectation")}
    missing = {key for key in keys - {"description"} if not re.search(rf"\b{key}\b", TEXT)}
    assert missing == set()
