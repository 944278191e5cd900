"""The dashboard and the alerts ask for metrics that exist; promtool tests the alerts where it is."""

import json
import re
import shutil
import subprocess

import pytest

from policyengine.server.metrics.process_metrics import EXPIRATION
from policyengine.server.metrics.scheduler_metrics import Histogram, SchedulerMetrics
from tests.deploy.manifests import DEPLOY, documents

MONITORING, CHART = DEPLOY / "monitoring", DEPLOY / "chart" / "files"
NAME = re.compile(r"\b((?:scheduler|policyengine)_[a-z_]+)\b")
LABELS = re.compile(r"\b((?:scheduler|policyengine)_[a-z_]+)\{([^}]*)\}")


def names() -> dict[str, set[str]]:
    """{name as Prometheus stores it: its labels}"""
    found: dict[str, set[str]] = {}
    for family in SchedulerMetrics().families():
        labels = {*family.labels, "job", "instance"}
        endings = ("_bucket", "_sum", "_count") if isinstance(family, Histogram) else ("",)
        for ending in endings:
            found[family.name + ending] = labels | ({"le"} if ending == "_bucket" else set())
    return {**found, EXPIRATION: {"job", "instance"}}


def queries() -> list[str]:
    panels = json.loads((CHART / "dashboard.json").read_text())["panels"]
    alerts = documents(CHART / "alerts.yaml")[0]["groups"][0]["rules"]
    return [target["expr"] for panel in panels for target in panel["targets"]] + [rule["expr"] for rule in alerts]


@pytest.mark.parametrize("query", queries())
def test_a_query_asks_for_metrics_and_labels_that_exist(query: str) -> None:
    known = names()
    asked = set(NAME.findall(query))
    assert asked <= set(known) or query.startswith("absent(up")
    for name, selectors in LABELS.findall(query):
        assert set(re.findall(r"([a-z_]+) *(?:=|!)", selectors)) <= known[name]


def test_the_panels_do_not_overlap_and_say_what_they_show() -> None:
    panels = json.loads((CHART / "dashboard.json").read_text())["panels"]
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels) == len({panel["title"] for panel in panels})


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool (Debian: prometheus) on the PATH")
def test_the_alerts_fire_when_they_should() -> None:
    for command in (["check", "rules", "../chart/files/alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
        done = subprocess.run(["promtool", *command], cwd=MONITORING, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
