"""The chart, as the real Helm renders it: with what it may be given, in any namespace, under any name."""

import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from policyengine.kube.config.configuration import read
from tests.deploy.manifests import DEPLOY, check, containers, documents, starts

CHART = DEPLOY / "chart"
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
TEMPLATES = "\n".join(path.read_text() for path in sorted((CHART / "templates").iterdir()))
RULES: dict[str, Any] = yaml.safe_load((CHART / "files" / "rules.yaml").read_text())
HELM = shutil.which("helm", path=str(Path(sys.executable).parent)) or shutil.which("helm")
needs_helm = pytest.mark.skipif(
    HELM is None, reason="there is no helm on the PATH, or beside this Python (helm-binary)"
)
POLICY = 'policy "a" {\n  filter "f" { require node.ready }\n}\n'
CA = "kube-root-ca.crt"
PARTS = ("rewards", "annotator", "extender", "webhook", "serviceMonitor", "alerts", "dashboard")
EVERYTHING: dict[str, Any] = {part: {"enabled": True} for part in PARTS} | {
    "extender": {
        "enabled": True,
        "policies": {"a": POLICY},
        "tlsSecret": "own",
        "clientCA": CA,
        "from": [{"podSelector": {}}],
    },
    "policies": {"b": POLICY},
    "tlsSecret": "pages",
    "imagePullSecrets": [{"name": "pull"}],
    "rbac": {"endpoints": True, "otherNamespaces": True},
    "nodeSelector": {"a": "b"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "annotations": {"a": "b"},
    "podAnnotations": {"c": "d"},
    "podLabels": {"e": "f"},
    "extraVolumes": [{"name": "v", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "v", "mountPath": "/v"}],
}
GIVEN: dict[str, dict[str, Any]] = {
    "nothing": {},
    "everything": EVERYTHING,
    "a webhook with cert-manager": {"webhook": {"enabled": True, "certManager": True, "failurePolicy": "Fail"}},
    "a webhook with its own Secret and callers": {
        "webhook": {"enabled": True, "tlsSecret": "mine", "caBundle": "YQ==", "clientCA": CA, "clientNames": ["a", "b"]}
    },
    "SchedulingPolicies": {"policies": {"b": POLICY}, "policyKind": "SchedulingPolicy"},
    "nodes by metrics.k8s.io": {"annotator": {"enabled": True, "prometheus": "", "args": ["--interval=2m"]}},
    "one replica without budget and policies": {
        "replicas": 1,
        "podDisruptionBudget": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "rbac": {"preemption": False, "volumes": False, "podGroups": False},
    },
    "pages without tokens": {"configuration": {"endpoints": {"authentication": "None", "debug": False}}},
    "namespaces of their own": {
        "configuration": {
            "policies": {"namespace": "team-policies"},
            "leaderElection": {"resourceNamespace": "leases", "resourceName": "mine"},
            "endpoints": {"address": "0.0.0.0:9000"},
        }
    },
}


@cache
def rendered(given: str, release: str = "rel", namespace: str = "somewhere") -> tuple[dict[str, Any], ...]:
    """What Helm makes of it: by the name of what it is given."""
    assert HELM is not None
    command = [HELM, "template", release, str(CHART), "--namespace", namespace, "--values", "-"]
    done = subprocess.run(command, input=json.dumps(GIVEN[given]), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return tuple(one for one in yaml.safe_load_all(done.stdout) if one)


def of_kind(kind: str, items: tuple[dict[str, Any], ...]) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in items if one["kind"] == kind}


@needs_helm
@pytest.mark.parametrize("given", GIVEN)
def test_every_object_is_what_kubernetes_takes_and_there_once(given: str) -> None:
    check(rendered(given))


@needs_helm
@pytest.mark.parametrize("given", GIVEN)
def test_containers_start_commands_that_exist_with_ports_and_volumes_that_are_there(given: str) -> None:
    for deployment in of_kind("Deployment", rendered(given)).values():
        pod = deployment["spec"]["template"]["spec"]
        for one in containers(pod):
            starts(one)
            volumes = {volume["name"] for volume in pod.get("volumes", ())}
            assert {mount["name"] for mount in one.get("volumeMounts", ())} <= volumes
            ports = {port["name"] for port in one.get("ports", ())}
            assert {one[probe]["httpGet"]["port"] for probe in one if probe.endswith("Probe")} <= ports


@needs_helm
@pytest.mark.parametrize("given", GIVEN)
def test_accounts_selectors_and_references_lead_to_what_the_release_has(given: str) -> None:
    items = rendered(given)
    accounts = of_kind("ServiceAccount", items)
    deployments = of_kind("Deployment", items).values()
    pods = [one["spec"]["template"] for one in deployments]
    (config,) = (one for name, one in of_kind("ConfigMap", items).items() if name == "rel-configuration")
    lease = read(config["data"]["config.yaml"], "config.yaml").lease
    assert lease is not None
    reader = f"{lease.name}-reader"
    assert {pod["spec"]["serviceAccountName"] for pod in pods} | {reader} == set(accounts)
    for kind in ("ClusterRole", "Role"):
        for binding in of_kind(f"{kind}Binding", items).values():
            assert binding["roleRef"]["name"] in of_kind(kind, items)
            (subject,) = binding["subjects"]
            assert (subject["name"], subject["namespace"]) in [(name, "somewhere") for name in accounts]
    selectors = [
        one["spec"]["selector"].get("matchLabels", one["spec"]["selector"])
        for kind in ("Deployment", "Service", "PodDisruptionBudget")
        for one in of_kind(kind, items).values()
    ]
    for selector in selectors:
        assert sum(selector.items() <= pod["metadata"]["labels"].items() for pod in pods) == 1
    made = {*of_kind("ConfigMap", items), *of_kind("Secret", items), "own", "pages", "mine", CA}
    made |= {one["spec"]["secretName"] for one in of_kind("Certificate", items).values()}
    for pod in pods:
        for volume in pod["spec"].get("volumes", ()):
            named = volume.get("configMap", {}).get("name") or volume.get("secret", {}).get("secretName")
            assert named is None or named in made


@needs_helm
def test_two_releases_share_no_object_and_nothing_is_in_a_namespace_that_nobody_named() -> None:
    first, second = rendered("everything"), rendered("everything", "other", "elsewhere")
    names = [{(one["kind"], one["metadata"]["name"]) for one in items} for items in (first, second)]
    assert not names[0] & names[1]
    assert "kube-system" not in yaml.safe_dump_all(first)
    assert {one["metadata"].get("namespace", "somewhere") for one in first} == {"somewhere", "rel-policies"}
    assert set(of_kind("Namespace", first)) == {"rel-policies"}


@needs_helm
def test_what_the_configuration_names_elsewhere_is_there() -> None:
    items = rendered("namespaces of their own")
    assert not of_kind("Namespace", items) and not of_kind("ResourceQuota", items), "they are not ours to make"
    roles = of_kind("Role", items)
    assert roles["rel-policies"]["metadata"]["namespace"] == "team-policies"
    assert roles["rel-lease"]["metadata"]["namespace"] == "leases"
    assert roles["rel-lease"]["rules"][1]["resourceNames"] == ["mine"]
    (container,) = containers(of_kind("Deployment", items)["rel"])
    assert container["ports"] == [{"containerPort": 9000, "name": "metrics"}]


@needs_helm
def test_policies_have_a_namespace_of_their_own_that_holds_so_many_and_that_the_webhook_is_asked_about() -> None:
    items = rendered("everything")
    (quota,) = of_kind("ResourceQuota", items).values()
    assert quota["metadata"]["namespace"] == "rel-policies"
    assert quota["spec"]["hard"] == {"count/configmaps": "100", "count/schedulingpolicies.policyengine.io": "100"}
    for hook in of_kind("ValidatingWebhookConfiguration", items)["rel-webhook"]["webhooks"]:
        assert hook["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "rel-policies"}
    config = yaml.safe_load(of_kind("ConfigMap", items)["rel-configuration"]["data"]["config.yaml"])
    assert config["policies"]["namespace"] == "rel-policies"
    assert of_kind("Role", items)["rel-policies"]["metadata"]["namespace"] == "rel-policies"


@needs_helm
def test_a_network_policy_says_of_every_pod_who_calls_it() -> None:
    items = rendered("everything")
    found = of_kind("NetworkPolicy", items)
    assert set(found) == set(of_kind("Deployment", items))
    assert {name for name, one in found.items() if "ingress" not in one["spec"]} == {"rel-annotator", "rel-rewards"}
    monitoring = VALUES["networkPolicy"]["from"]
    assert "from" not in found["rel"]["spec"]["ingress"][0], "the API server's proxy has no label; tokens are asked for"
    unasked = of_kind("NetworkPolicy", rendered("pages without tokens"))["rel"]
    assert unasked["spec"]["ingress"][0]["from"] == monitoring
    assert found["rel-extender"]["spec"]["ingress"][0]["from"] == [*EVERYTHING["extender"]["from"], *monitoring]
    assert "from" not in found["rel-webhook"]["spec"]["ingress"][0], "the API server has no label"


@needs_helm
def test_policies_and_files_arrive_as_they_were_given() -> None:
    items = rendered("everything")
    maps = of_kind("ConfigMap", items)
    assert maps["rel-policy-b"]["data"]["b.policy"] == POLICY
    assert maps["rel-policy-b"]["metadata"]["labels"]["policyengine.io/policy"] == "true"
    assert maps["rel-extender-policies"]["data"]["a.policy"] == POLICY
    own = of_kind("SchedulingPolicy", rendered("SchedulingPolicies"))["rel-policy-b"]
    assert own["spec"] == {"policies": {"b.policy": POLICY}}
    dashboard = json.loads(maps["rel-dashboard"]["data"]["policyengine.json"])
    assert dashboard == json.loads((CHART / "files" / "dashboard.json").read_text())
    (rule,) = of_kind("PrometheusRule", items).values()
    (ours,) = documents(CHART / "files" / "alerts.yaml")
    assert rule["spec"] == yaml.safe_load(json.dumps(ours).replace('job=\\"policyengine\\"', 'job=\\"rel\\"'))


@needs_helm
def test_the_rights_are_those_of_the_manifests_with_the_releases_names() -> None:
    written: dict[tuple[str, ...], Any] = {}
    overlays = [f"overlays/{name}/rbac.yaml" for name in ("webhook", "as-extender", "other-namespaces")]
    for path in ("base/rbac.yaml", *overlays, "annotator.yaml"):
        for one in documents(DEPLOY / path):
            if "rules" in one:
                meta = one["metadata"]
                where = (meta["namespace"],) if "namespace" in meta else ()
                written[one["kind"], meta["name"], *where] = one["rules"]
    items = rendered("everything")
    cluster, local = of_kind("ClusterRole", items), of_kind("Role", items)
    for name, one in cluster.items():
        assert plain(one["rules"]) == plain(written["ClusterRole", name.replace("rel", "policyengine", 1)]), name
    for name, there in (
        ("rel-policies", ("policyengine", "policyengine-policies")),
        ("rel-lease", ("policyengine", "kube-system")),
        ("rel-user", ("policyengine-user", "kube-system")),
        ("rel-rewards", ("policyengine-rewards", "kube-system")),
        ("rel-webhook", ("policyengine-webhook", "kube-system")),
    ):
        assert plain(local[name]["rules"]) == plain(written["Role", *there])
    metrics = of_kind("ClusterRole", rendered("nodes by metrics.k8s.io"))["rel-annotator"]["rules"]
    assert metrics == [
        *written["ClusterRole", "policyengine-annotator"],
        *written["ClusterRole", "policyengine-annotator-metrics"],
    ]


def plain(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the names of what they are bound to counted, not compared."""
    return [{**rule, "resourceNames": len(rule.get("resourceNames", ()))} for rule in rules]


@needs_helm
def test_a_wrong_value_is_told_by_helm() -> None:
    assert HELM is not None
    done = subprocess.run([HELM, "template", "rel", str(CHART), "--set", "replicas=0"], capture_output=True, text=True)
    assert done.returncode != 0 and "replicas" in done.stderr


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
        ("policyKind", "Secret"),
        ("rbac.preemption", "yes"),
        ("policyQuota", "many"),
        ("rewards.replicas", 0),
        ("webhook.failurePolicy", "Sometimes"),
        ("extender.policies", {"x": 1}),
        ("networkPolicy.from", "monitoring"),
        ("serviceMonitor.interval", "often"),
        ("schedulerName", ""),
        ("unknown", 1),
    ],
)
def test_a_wrong_value_is_refused(path: str, value: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed(path, value), SCHEMA)


def test_no_value_is_unused() -> None:
    used = set(re.findall(r"(?:Values|given|\.values)\.([A-Za-z]+)", TEMPLATES))
    assert set(VALUES) <= used


@pytest.mark.parametrize("name", ["podgroups.yaml", "schedulingpolicies.yaml"])
def test_the_charts_custom_resources_are_those_of_the_manifests(name: str) -> None:
    assert (CHART / "crds" / name).read_text() == (DEPLOY / "base" / name).read_text()
