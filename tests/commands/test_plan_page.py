"""`policyengine plan -o html`: one page that loads nothing, in which every name is text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from policyengine.commands.main import cli
from policyengine.commands.reports.plan_report import page, written
from policyengine.plan.comparison import Plan, compared
from policyengine.plan.rerun import Rerun
from policyengine.trials.ledger import Ledger
from tests.plan.test_measures import PACKED, SPREAD, runs

HOSTILE = '<script>alert("&1")</script>\u202e\x1b[2J'
VOID = {"meta"}


class Read(HTMLParser):
    """The elements, with their attributes, and the text; whether every one that is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def planned(**scenario: Any) -> Plan:
    old, new = runs(SPREAD, PACKED, **scenario)
    return Plan("6 pods of a test", "spread 1", "packed 2", compared(old, new), runs=(old, new))


@pytest.fixture(scope="module")
def plan() -> Plan:
    nodes = [{"name": "n", "count": 3, "allocatable": {"cpu": 4}}]
    pods = [{"name": "p", "count": 20, "every": "3s", "runs": "30s", "requests": {"cpu": 1}}]
    return planned(nodes=nodes, pods=pods)


def test_the_page_has_the_figures_of_both_and_a_picture_of_each_kind(plan: Plan) -> None:
    found = Read(page(plan))
    titles = {
        "Pods that wait, over time",
        "How many pods were placed within which time",
        "cpu that is asked for, over time",
    }
    assert titles <= set(found.texts)
    assert [tag for tag, _ in found.tags].count("svg") == len(plan_pictures(found))
    kinds = [attributes.get("class") for tag, attributes in found.tags if tag == "polyline"]
    assert kinds == ["old", "new"] * (len(kinds) // 2)
    assert "utilisation cpu" in found.texts
    assert f"{plan.comparison.moved} of them are placed on another node" in found.texts


def plan_pictures(found: Read) -> list[str]:
    return [tag for tag, _ in found.tags if tag == "figure"]


def test_nothing_is_loaded_and_nothing_runs(plan: Plan) -> None:
    text = page(plan)
    found = Read(text)
    assert not {tag for tag, _ in found.tags} & {"script", "link", "img", "iframe", "object", "a", "image", "use"}
    names = {name for _, attributes in found.tags for name in attributes}
    assert not names & {"src", "href", "onload", "onclick", "style"}
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_every_name_is_text(plan: Plan) -> None:
    first = plan.comparison.newly_placed or plan.comparison.longer
    fares = [replace(one, pod=HOSTILE, old=HOSTILE, why=HOSTILE) for one in first[:1]]
    comparison = replace(
        plan.comparison,
        newly_waiting=fares,
        refused_by={HOSTILE: (1, 2)},
        by_namespace={
            HOSTILE: ({"p50": 0.0, "p99": 1.0, "share": 0.1},) * 2,
            "b": ({"p50": 0.0, "p99": 0.0, "share": 0},) * 2,
        },
    )
    hostile = replace(plan, about=HOSTILE, old=HOSTILE, new=HOSTILE, notes=[HOSTILE], comparison=comparison)
    text = page(hostile)
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert '<script>alert("&1")</script>\\u202e\\x1b[2J' in Read(text).texts


def test_in_markdown_a_name_is_text_too(plan: Plan) -> None:
    hostile = replace(plan, about="a | b <!-- [c](http://d) \n", notes=["<img src=x>"])
    text = written(hostile)
    assert "a &#124; b &lt;!-- &#91;c](http:<!-- -->//d) \\n  " in text.splitlines()
    assert "note: &lt;img src=x&gt;  " in text.splitlines()
    calls = written(replace(plan, notes=["@team www.example.com team/app#1"]))
    assert "note: @<!-- -->team www<!-- -->.example.com team/app#<!-- -->1  " in calls.splitlines()


@pytest.mark.parametrize(
    "scenario",
    [
        {"nodes": [{"name": "n"}], "pods": [{"name": "p", "at": "99s"}]},
        {"nodes": [{"name": "n", "at": "99s"}], "pods": [{"name": "p"}]},
        {"nodes": [{"name": "n", "allocatable": {"cpu": 0}}], "pods": [{"name": "p", "count": 3}]},
    ],
)
def test_a_run_in_which_little_happens_has_a_page(scenario: dict[str, Any]) -> None:
    text = page(planned(**scenario))
    Read(text)
    assert "nan" not in text
    assert not re.search(r"-\d+\.\d+,", text), "nothing is drawn beside the plot"


def test_a_run_of_nothing_has_a_page() -> None:
    empty = Rerun(Ledger(), 0.0)
    Read(page(Plan("nothing", "a", "b", compared(empty, empty), runs=(empty, empty))))


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    (tmp_path / "new.policy").write_text(PACKED)
    (tmp_path / "day.yaml").write_text(
        f"duration: 2min\npolicies: [{{text: '{SPREAD.replace(chr(10), ' ')}'}}]\n"
        "nodes: [{name: n, count: 2}]\npods: [{name: p, count: 3, requests: {cpu: 1}}]\n"
    )
    arguments = ["plan", str(tmp_path / "new.policy"), "--scenario", str(tmp_path / "day.yaml"), "-o", "html"]
    told = CliRunner().invoke(cli, arguments)
    assert told.exit_code == 0, told.output
    assert "3 pods over 2min of scenario day.yaml" in Read(told.stdout).texts
