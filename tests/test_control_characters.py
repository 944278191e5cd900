"""Controls as escapes: in the text itself, and wherever a text of somebody else's is shown."""

import io
import json
import logging
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from policyengine.commands.explain import explain
from policyengine.commands.explaining.live_answers import show as show_timeline
from policyengine.commands.main import main
from policyengine.commands.simulate import simulate
from policyengine.control_characters import escaped, escaped_lines, escaped_values
from policyengine.kube.config.process import JsonLines, TextLines
from policyengine.kube.writing.pod_events import conditions
from tests.kube.writing.test_pod_events import an_event, written

EVIL = "a\n00:00:00 INFO    forged\r\x1b[2J\x9b1m\x00\u202e\u2028z"
SHOWN = r"a\n00:00:00 INFO    forged\r\x1b[2J\x9b1m\x00\u202e\u2028z"


def test_what_is_not_printable_is_an_escape_and_the_rest_is_as_it_was() -> None:
    assert escaped(EVIL) == SHOWN
    assert escaped("näher at 3 °C [bold]") == "näher at 3 °C [bold]"
    assert escaped_lines("a\x1b\nb\r\n") == "a\\x1b\nb\\r\n"
    assert escaped_values({"a\n": ["\x1b", 1, None, {"b": "\0"}]}) == {"a\\n": ["\\x1b", 1, None, {"b": "\\x00"}]}


@given(st.text(st.characters()))
def test_any_text_becomes_one_printable_line_that_can_be_encoded(text: str) -> None:
    assert escaped(text).isprintable()
    escaped(text).encode()


def logged(form: logging.Formatter, message: str) -> str:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(form)
    logger = logging.Logger("policyengine.test")
    logger.addHandler(handler)
    try:
        raise ValueError(message)
    except ValueError:
        logger.exception("pod `%s` failed", message, extra={"pod": message})
    return out.getvalue()


def test_no_text_forges_a_log_line() -> None:
    first, *others = logged(TextLines(), EVIL).splitlines()
    assert first.endswith(f"pod `{SHOWN}` failed pod={SHOWN}")
    assert others and all(line.startswith("    ") and line.isprintable() for line in others)
    assert "    00:00:00 INFO    forged" in others


def test_a_line_of_json_is_printable_and_says_the_same() -> None:
    line = logged(JsonLines(), EVIL)
    assert line.removesuffix("\n").isprintable()
    assert json.loads(line)["pod"] == EVIL


def test_notes_of_events_and_messages_of_conditions_are_escaped() -> None:
    assert written(an_event(EVIL))[0].body["note"] == SHOWN
    assert conditions("PodScheduled", "False", "Unschedulable", EVIL, "", 0)["conditions"][0]["message"] == SHOWN  # type: ignore[index]


def dump() -> dict[str, Any]:
    taint = {"key": f"k{EVIL}", "value": EVIL, "effect": "NoSchedule"}
    status = {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "9"}}
    return {
        "nodes": [
            {"metadata": {"name": "tainted"}, "spec": {"taints": [taint]}, "status": status},
            {"metadata": {"name": "free", "annotations": {"n": EVIL}}, "status": status},
        ],
        "pending": [{"metadata": {"name": "p", "namespace": "n", "uid": EVIL}, "spec": {}}],
    }


def is_clean(text: str) -> bool:
    return text.replace("\n", "").isprintable() and not any(line.startswith("00:00:00") for line in text.splitlines())


def test_explain_shows_taints_and_messages_as_escapes(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump()))
    policy = tmp_path / "p.policy"
    read = '"at {node.annotations[?\\"n\\"].orValue(\\"\\")}: [red]no"'
    policy.write_text(f'policy "p" {{ filter "f" {{ require node.name == "x" else {read} }} }}')
    assert is_clean(CliRunner().invoke(explain, ["--cluster", str(file)]).output)
    said = CliRunner().invoke(explain, ["--alone", "--cluster", str(file), "--policy", str(policy)]).output
    assert "\\x1b[2J" in said and "[red]no" in said.replace("\n", "") and is_clean(said)


def test_a_pods_timeline_shows_names_and_messages_as_escapes() -> None:
    out = io.StringIO()
    line = {"at": "2026-01-05T18:30:00+00:00", "what": EVIL, "message": f"[red]{EVIL}"}
    timeline = dict.fromkeys(("pod", "place", "node", "nominatedNode", "message"), EVIL)
    policy = {"name": EVIL, "hash": "ab"}
    more = {"position": None, "queue": {}, "policy": policy, "attempts": 1, "story": [line]}
    show_timeline({**timeline, **more}, Console(file=out, highlight=False))
    assert "\\x1b[2J" in out.getvalue() and "[red]a" in out.getvalue() and is_clean(out.getvalue())


def test_a_scenarios_tables_and_picture_show_names_as_escapes(tmp_path: Path) -> None:
    evil, resource = (json.dumps(f"{of}{EVIL}".replace("\x00", "")) for of in ("", "vendor/"))  # YAML has no NUL
    file, picture, policy = tmp_path / "s.yaml", tmp_path / "s.svg", tmp_path / "p.policy"
    policy.write_text('policy "p" { filter "f" { require pod.name == "x" else "\\x1b[2J[red]no" } }')
    given = f"nodes: [{{name: n, count: 1, allocatable: {{cpu: 4, {resource}: 2}}}}]"
    file.write_text(f"name: {evil}\n{given}\npods: [{{name: p, requests: {{cpu: 1, {resource}: 1}}}}]\n")
    said = CliRunner().invoke(simulate, [str(file), "--svg", str(picture), "--policy", str(policy)]).output
    assert "\\x1b[2J" in said and "[red]no" in said and is_clean(said)
    ElementTree.parse(picture)
    file.write_text(f"nodes: [{{name: n, count: 1, allocatable: {{{evil}: 2}}, {evil}: 1}}]\npods: []\n")
    error = CliRunner().invoke(simulate, [str(file)]).exception
    assert error is not None and "\\x1b[2J" in str(error)
    assert all(is_clean(line) and line.startswith(f"`{file}`") for line in str(error).split("\n"))


def stopped(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit):
        main(arguments)
    return capsys.readouterr().err


def test_an_error_is_one_line_whatever_the_object_is_called(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"nodes": [], "pending": [{"metadata": {"name": EVIL}, "status": {"phase": 3}}]}))
    said = stopped(capsys, "explain", "--cluster", str(file))
    assert said.count("\n") == 1 and "\\x1b[2J" in said
