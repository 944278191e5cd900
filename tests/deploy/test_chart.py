"""The chart's values and their schema; its rendering where `helm` is."""

import json
import re
import shutil
import subprocess
from typing import Any

import jsonschema
import pytest
import yaml

from policyengine.kube.config.configuration import read
from tests.deploy.manifests import DEPLOY, documents

CHART = DEPLOY / "chart"
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
TEMPLATES = "\n".join(path.read_text() for path in sorted((CHART / "templates").iterdir()))


def changed(path: str, value: Any) -> dict[str, Any]:
    values = json.loads(json.dumps(VALUES))
    *parents, last = path.split(".")
    inner = values
    for name in parents:
        inner = inner[name]
    inner[last] = value
    return dict(values)


def test_the_values_fit_the_schema_and_every_value_is_in_it() -> None:
    jsonschema.validate(VALUES, SCHEMA)
    assert set(VALUES) <= set(SCHEMA["properties"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("replicas", 0),
        ("replicas", "2"),
        ("image.repository", ""),
        ("image.pullPolicy", "Sometimes"),
        ("configuration.kind", "KubeSchedulerConfiguration"),
        ("policies", {"Bad Name": 'policy "x" {}'}),
        ("policies", {"x": ""}),
        ("rbac.preemption", "yes"),
        ("rewards.replicas", 0),
        ("networkPolicy.monitoringNamespace", ""),
        ("serviceMonitor.interval", "often"),
        ("unknown", 1),
    ],
)
def test_a_wrong_value_is_refused(path: str, value: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed(path, value), SCHEMA)


def test_the_templates_use_values_that_exist_and_no_value_is_unused() -> None:
    used = set(re.findall(r"\.Values\.([A-Za-z.]+)", TEMPLATES))
    for path in used:
        inner: Any = VALUES
        for name in path.split("."):
            assert isinstance(inner, dict) and name in inner, path
            inner = inner[name]
    assert {path.split(".")[0] for path in used} == set(VALUES)


def test_every_block_that_is_opened_is_closed() -> None:
    opened = re.findall(r"{{-? *(if|range|with|define)\b", TEMPLATES)
    assert len(opened) == len(re.findall(r"{{-? *end\b", TEMPLATES)) and TEMPLATES.count("{{") == TEMPLATES.count("}}")


def test_the_chart_gives_the_rights_of_the_manifests() -> None:
    plain = re.sub(r"(?m)^ *{{-.*\n", "", (CHART / "templates" / "rbac.yaml").read_text())
    chart = [one for one in yaml.safe_load_all(re.sub(r"{{[^}]*}}", "x", plain)) if one and "rules" in one]
    base = [one for one in documents(DEPLOY / "base" / "rbac.yaml") if "rules" in one]
    others = ("policyengine-annotator", "policyengine-rewards")
    ours = [one["rules"] for one in base if one["metadata"]["name"] not in others]
    names = [rule.get("resourceNames") for one in ours for rule in one if rule.get("resourceNames")]
    for rules in ours:
        for rule in rules:
            if "resourceNames" in rule:
                rule["resourceNames"] = ["x"]
    assert names == [["policyengine"]] and [one["rules"] for one in chart] == ours


def test_the_chart_gives_the_rewards_the_rights_of_the_manifests() -> None:
    plain = re.sub(r"(?m)^ *{{-.*\n", "", (CHART / "templates" / "rewards.yaml").read_text())
    chart = [one for one in yaml.safe_load_all(re.sub(r"{{[^}]*}}", "policyengine", plain)) if one]
    base = [
        one for one in documents(DEPLOY / "base" / "rbac.yaml") if one["metadata"]["name"] == "policyengine-rewards"
    ]
    assert [one["rules"] for one in chart if "rules" in one] == [one["rules"] for one in base if "rules" in one]
    assert [one["kind"] for one in chart[:5]] == [one["kind"] for one in base]
    [config_map] = [one for one in chart if one["kind"] == "ConfigMap"]
    [deployment] = [one for one in chart if one["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["rewards", f"--state-configmap=policyengine/{config_map['metadata']['name']}"]


def test_the_charts_custom_resource_is_that_of_the_manifests() -> None:
    assert (CHART / "crds" / "podgroups.yaml").read_text() == (DEPLOY / "base" / "podgroups.yaml").read_text()


def test_the_configuration_is_one() -> None:
    read(yaml.safe_dump(VALUES["configuration"]), "values.yaml")
    [base] = documents(DEPLOY / "base" / "configuration.yaml")
    assert yaml.safe_load(base["data"]["config.yaml"]) == VALUES["configuration"]


@pytest.mark.skipif(shutil.which("helm") is None, reason="there is no helm on the PATH")
def test_helm_renders_it() -> None:
    command = ["helm", "template", "rel", str(CHART), "--set", "serviceMonitor.enabled=true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    kinds = [one["kind"] for one in yaml.safe_load_all(done.stdout) if one]
    assert {"Deployment", "ServiceMonitor", "ClusterRole", "ConfigMap"} <= set(kinds)
