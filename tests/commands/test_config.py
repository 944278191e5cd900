"""`policyengine config`: what `run` would run with, or all that is wrong with it."""

import json
import re
from pathlib import Path

import click
import yaml

from policyengine.commands.run import run
from policyengine.kube.config.configuration import load
from tests.commands.process import policyengine

HEAD = "apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\n"


def test_without_a_file_it_prints_every_default() -> None:
    ended = policyengine("config")
    assert ended.code == 0
    data = yaml.safe_load(ended.out)
    assert data["leaderElection"]["leaseDuration"] == "15s"
    assert data["endpoints"]["address"] == "127.0.0.1:10259"


def test_flags_beat_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(HEAD + "clientConnection: {qps: 5}\nlog: {format: json}\nleaderElection: {leaseDuration: 20s}\n")
    flags = ("--kube-api-qps", "70", "--no-leader-elect", "--policy", "a", "--policy", "b", "--param", "x=1", "-v")
    data = yaml.safe_load(policyengine("config", "--config", path, *flags).out)
    assert data["clientConnection"]["qps"] == 70
    assert data["log"] == {"format": "json", "level": "debug"}
    assert data["leaderElection"]["leaderElect"] is False
    assert data["leaderElection"]["leaseDuration"] == "20s"
    assert data["policies"]["files"] == ["a", "b"]
    assert data["policies"]["params"] == {"x": "1"}


def test_what_is_wrong_is_told_line_by_line_by_config_and_by_run(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(HEAD + "log: {format: xml}\nleaderElection:\n  leaseDuration: 15\n")
    for command in ("config", "run"):
        ended = policyengine(command, "--config", path)
        assert ended.code == 2
        assert ended.err.count(str(path)) == 2
        assert "line 3, column 15: `log.format`" in ended.err and "line 5" in ended.err


def test_a_flag_that_is_wrong_is_told_as_the_field_it_is() -> None:
    ended = policyengine("config", "--leader-elect-lease-duration", "soon")
    assert ended.code == 2
    assert "the command line" in ended.err and "`leaderElection.leaseDuration`" in ended.err


def test_the_schema_is_printed() -> None:
    found = json.loads(policyengine("config", "--schema").out)
    assert found["properties"]["kind"] == {"const": "SchedulerConfiguration", "description": "what this file is"}


def test_the_defaults_that_flags_tell_are_those_of_the_configuration() -> None:
    compared, defaults = 0, load(None, {}).data
    for option in run.params:
        if not isinstance(option, click.Option) or "_" not in str(option.name):
            continue
        name, text = str(option.name), option.help or ""
        section, field = name.split("_", 1)
        default = defaults[section].get(field)
        if told := re.search(r"\[default: (.+)\]", text):
            compared += 1
            wanted = not told[1].startswith("no-") if isinstance(default, bool) else told[1]
            assert wanted == (default if isinstance(default, bool) else str(default)), name
    assert compared > 10
