"""What the playground begins with: the policies that come along, and the clusters that tests give."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from policyengine import plain_yaml
from policyengine.compiler.assemble import PluginRegistry
from policyengine.language import ir
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.parse import read_source
from policyengine.language.values import format_timestamp
from policyengine.server.pages.playground.evaluation import FILE, compiled, policies_folder
from policyengine.trials.policy_test import START, in_file_tests
from policyengine.trials.policy_test_objects import given_group, given_namespace, node_item, pod_item

Json = dict[str, Any]
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
    return plain_yaml.written(_said(found))


def _said(value: Any) -> Any:
    """Without what says nothing."""
    if isinstance(value, dict):
        told = {key: _said(one) for key, one in value.items()}
        return {key: one for key, one in told.items() if one not in (None, "", 0, False) and one != {} and one != []}
    return [_said(one) for one in value] if isinstance(value, list) else value
