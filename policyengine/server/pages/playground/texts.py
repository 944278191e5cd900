"""The playground's texts: what it begins with, which are the policies that come along and the clusters that tests give;
and what a person takes along: a ConfigMap, a test, a scenario."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from policyengine import plain_yaml
from policyengine.cluster.kinds import CONFIG_MAPS
from policyengine.cluster.objects import ObjectError
from policyengine.cluster.pod_objects import DEFAULT_SCHEDULER_NAME
from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import Profile
from policyengine.kube.policies.config_map import LABEL
from policyengine.kube.policies.sources import POLICY_SUFFIX
from policyengine.language import ir
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.parse import read_source
from policyengine.language.values import format_timestamp
from policyengine.plugins.registry import with_default_profile
from policyengine.server.pages.playground.evaluation import FILE, compiled, policies_folder
from policyengine.server.pages.playground.tried_cluster import Json, Unusable, read
from policyengine.trials.finding_example import as_test, expected, given, play
from policyengine.trials.policy_test import START, TestedPolicy, in_file_tests
from policyengine.trials.policy_test_objects import given_group, given_namespace, node_item, pod_item
from policyengine.trials.scenario import ScenarioError

MOST: Final = 100
"""Nodes, and pods, of a test: more nobody reads."""
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
FIRST: Final = """\
policy "first" {
  scheduler "first"

  filter "room-to-grow" {
    require node.free.cpu >= 1
      else "has only {node.free.cpu} cpu left"
  }

  score "emptiest" weight 1 = 100 * ratio(node.free.cpu, node.allocatable.cpu)

  test "a full node is left alone" {
    given node "full" { allocatable: {cpu: 1, memory: 4Gi, pods: 10} }
    given node "free" { allocatable: {cpu: 4, memory: 4Gi, pods: 10} }
    given pod "there" on "full" { requests: {cpu: 500m} }
    given pod "web" { requests: {cpu: 500m} }
    expect "web" on "free"
  }
}
"""
SCENARIO: Final = """\
# Nodes and pods that come; see docs/simulate.md. What kubectl get nodes,pods -A -o yaml prints does as well.
nodes:
  - {name: node, count: 3, allocatable: {cpu: 4, memory: 8Gi}, zones: [east, west]}

pods:
  - {name: web, count: 8, requests: {cpu: 1, memory: 1Gi}}
  - {name: batch, count: 2, at: 1min, runs: 5min, requests: {cpu: 1500m, memory: 2Gi}}
"""


def names() -> list[str]:
    """Of the policies that come along."""
    return sorted(path.stem for path in policies_folder().glob("*.policy"))


def start(name: str, registry: PluginRegistry) -> Json:
    """`{policy, cluster}`: a policy that comes along with the cluster of its first test, or one to begin with."""
    if name not in names():
        return {"policy": FIRST, "cluster": SCENARIO}
    text = read_source(policies_folder() / f"{name}.policy").text
    first = next(iter(_tests(text, registry)), None)
    return {"policy": text, "cluster": SCENARIO if first is None else cluster_of(*first)}


def test_names(text: str, registry: PluginRegistry) -> list[str]:
    """Of the text's tests, in the order in which they are written."""
    return [test.name for _, test in _tests(text, registry)]


def test_cluster(text: str, name: str, registry: PluginRegistry) -> str:
    """The cluster that a test of the text gives; "" where there is no such test."""
    return next((cluster_of(policy, test) for policy, test in _tests(text, registry) if test.name == name), "")


def _tests(text: str, registry: PluginRegistry) -> list[tuple[ir.Policy, ir_test.Test]]:
    """Raises `Unusable`."""
    policies = [policy for policy in compiled(text, registry).policies if policy.source.file == FILE]
    return [(policy, test) for policy in policies for test in in_file_tests(policy)]


def cluster_of(policy: ir.Policy, test: ir_test.Test) -> str:
    """What a test gives, as objects of the API in YAML; those that come later are there from the start."""
    created = format_timestamp(START)
    pods = [step for step in test.steps if isinstance(step, ir_test.GivenPod)]
    found = {
        "nodes": [node_item(step) for step in test.steps if isinstance(step, ir_test.GivenNode)],
        "pods": [pod_item(step, number, policy.scheduler, created) for number, step in enumerate(pods)],
        "podGroups": [msgspec.to_builtins(group) for group in map(given_group, pods) if group is not None],
        "namespaces": [msgspec.to_builtins(one) for pod in pods if (one := given_namespace(pod, {})) is not None],
    }
    return plain_yaml.written(_pruned(found))


def _pruned(value: Any) -> Any:
    """Without what says nothing."""
    if isinstance(value, dict):
        told = {key: _pruned(one) for key, one in value.items()}
        return {key: one for key, one in told.items() if one not in (None, "", 0, False) and one != {} and one != []}
    return [_pruned(one) for one in value] if isinstance(value, list) else value


# --- what is taken along ----------------------------------------------------------------------------------


def exported(what: str, text: str, cluster: str, registry: PluginRegistry) -> Json:
    """`{file, text, hint}`: what to call it, what is in it, and what to do with it. Raises `Unusable`."""
    policy, profiles = _one(text, registry)
    name = _NOT_IN_NAMES.sub("-", policy.name.lower()).strip("-")[:200] or "policy"
    if what == "config-map":
        hint = "kubectl apply -f FILE; the scheduler checks it, runs its tests, and takes it over"
        return {"file": f"{name}.yaml", "text": _config_map(name, text), "hint": hint}
    if what == "scenario":
        hint = "policyengine simulate FILE plays it"
        return {"file": f"{name}-scenario.yaml", "text": _scenario(name, text, cluster, registry), "hint": hint}
    hint = "put it into the policy, before its last brace; policyengine test runs it"
    return {"file": f"{name}-test.txt", "text": _test(policy, profiles, cluster, registry), "hint": hint}


def _one(text: str, registry: PluginRegistry) -> tuple[ir.Policy, list[Profile]]:
    """The policy of the text, and what serves with it."""
    result = compiled(text, registry)
    own = [policy for policy in result.policies if policy.source.file == FILE]
    if result.failed or len(own) != 1:
        raise Unusable("the text has mistakes" if result.failed else f"the text holds {len(own)} policies, not one")
    return own[0], with_default_profile(result.profiles)


def _config_map(name: str, text: str) -> str:
    metadata = {"name": name, "namespace": "kube-system", "labels": {LABEL: "true"}}
    head = {"apiVersion": CONFIG_MAPS.api_version, "kind": CONFIG_MAPS.kind, "metadata": metadata}
    return plain_yaml.written({**head, "data": {f"{name}{POLICY_SUFFIX}": text}})


def _scenario(name: str, text: str, cluster: str, registry: PluginRegistry) -> str:
    found = read(cluster, registry)
    if found.scenario is None:
        raise Unusable(
            "this is no scenario but a cluster as it is: save both texts; `policyengine simulate --cluster FILE "
            "--policy POLICY` plays them"
        )
    return plain_yaml.written({"name": name, **found.scenario, "policies": [{"text": text}]})


# --- a test ----------------------------------------------------------------------------------------------


def _test(policy: ir.Policy, profiles: Sequence[Profile], cluster: str, registry: PluginRegistry) -> str:
    """The cluster's nodes and pods given, and what becomes of the pods expected."""
    try:
        nodes, pods = read(cluster, registry).items(profiles)
    except ScenarioError as error:
        raise Unusable(f"the scenario cannot be used: {error}") from None
    if max(len(nodes), len(pods)) > MOST:
        raise Unusable(f"a test of {len(nodes)} nodes and {len(pods)} pods says little: take {MOST} of each at most")
    schedulers = ((pod.get("spec") or {}).get("schedulerName") or DEFAULT_SCHEDULER_NAME for pod in pods)
    ours = [pod for pod, name in zip(pods, schedulers, strict=True) if name == policy.scheduler or _node(pod)]
    example = _example(nodes, ours)
    if not example["pods"]:
        raise Unusable(f"no pod of scheduler `{policy.scheduler}` is to be placed: there is nothing to test")
    try:
        run = play(TestedPolicy(policy, registry=registry), example)
    except ObjectError as error:
        raise Unusable(f"the cluster cannot be given in a test: {error}") from None
    if run is None:
        raise Unusable("the cluster cannot be given in a test: give it fewer fields")
    steps = [*given(example), *expected(run, example, (), False)]
    return as_test("what the playground showed", (), steps, policy) + "\n"


def _example(nodes: Sequence[Json], pods: Sequence[Json]) -> Json:
    if len(set(map(_name, pods))) < len(pods):
        raise Unusable("two pods have one name in different namespaces; a test tells pods apart by their names")
    placed = {_name(pod): _given_pod(pod) | {"on": _node(pod)} for pod in pods if _node(pod)}
    waiting = {_name(pod): _given_pod(pod) for pod in pods if not _node(pod)}
    return {"nodes": {_name(node): _given_node(node) for node in nodes}, "standing": placed, "pods": waiting}


def _given_node(node: Json) -> Json:
    metadata, spec, status = (node.get(part) or {} for part in ("metadata", "spec", "status"))
    ready = [one.get("status") == "True" for one in status.get("conditions") or () if one.get("type") == "Ready"]
    labels = dict(metadata.get("labels") or {})
    if labels.get("kubernetes.io/hostname") == _name(node):
        del labels["kubernetes.io/hostname"]
    return _said(
        {
            "allocatable": status.get("allocatable"),
            "labels": labels,
            "annotations": metadata.get("annotations"),
            "taints": spec.get("taints"),
            "unschedulable": spec.get("unschedulable"),
        }
    ) | ({} if all(ready) else {"ready": False})


def _given_pod(pod: Json) -> Json:
    metadata, spec = (pod.get(part) or {} for part in ("metadata", "spec"))
    containers = spec.get("containers") or []
    fields = {
        "namespace": metadata.get("namespace") if metadata.get("namespace") != "default" else None,
        "labels": metadata.get("labels"),
        "annotations": metadata.get("annotations"),
        "priority": spec.get("priority"),
        "nodeSelector": spec.get("nodeSelector"),
        "tolerations": spec.get("tolerations"),
    }
    if len(containers) == 1:
        resources = containers[0].get("resources") or {}
        fields |= {name: resources.get(name) for name in ("requests", "limits")}
    kept = {"affinity", "topologySpreadConstraints", "overhead", "schedulingGates", "schedulingGroup"}
    raw = {name: value for name, value in spec.items() if name in kept}
    if len(containers) > 1:
        raw["containers"] = containers
    return _said(fields | {"spec": _said(raw)})


def _said(fields: Mapping[str, Any]) -> Json:
    """Without what says nothing."""
    return {name: value for name, value in fields.items() if value}


def _name(item: Json) -> str:
    return str((item.get("metadata") or {}).get("name", ""))


def _node(pod: Json) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")
