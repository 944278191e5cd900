"""The page for those who ran kube-safe-scheduler: the params and options it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from policyengine.commands.annotate import annotate
from policyengine.commands.policies import load_profiles

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "agents.md").read_text()


def test_every_param_that_the_page_names_is_one_of_the_agents_policies() -> None:
    values = dict(re.findall(r"--param ([\w.]+)=([\w.]+)", PAGE))
    assert len(values) == 7
    agents = [ROOT / "policies" / f"{name}.policy" for name in ("safe-overload", "congestion", "pigeon")]
    load_profiles([*agents, ROOT / "policies" / "lib"], values)


def test_every_option_of_the_annotator_that_the_page_names_is_there() -> None:
    known = {name for option in annotate.params for name in option.opts}
    asked = {name for line in PAGE.splitlines() if "`annotate" in line for name in re.findall(r"--[\w-]+", line)}
    assert asked and asked <= known


def test_the_deployment_has_the_weights_that_the_page_tells_of() -> None:
    text = (ROOT / "deploy" / "overlays" / "agents" / "kube-scheduler.yaml").read_text()
    weights = {one["urlPrefix"].rpartition("/")[2]: one["weight"] for one in yaml.safe_load(text)["extenders"]}
    assert weights == {"safe-overload": 5, "congestion": 5, "pigeon": 10}
