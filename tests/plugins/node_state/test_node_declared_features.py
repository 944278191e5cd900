"""NodeDeclaredFeatures: what a pod's spec needs of a kubelet, and where it is declared."""

from __future__ import annotations

import pytest

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.plugin import UNCONCERNED
from policyengine.framework.status import Code
from policyengine.plugins.node_state.node_declared_features import NodeDeclaredFeatures, required_features
from tests.builders import PodBuilder, make_node, make_pod

RESTART_ALL, USER_NAMESPACES = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"


def restarting(action: str = "RestartAllContainers", init: bool = False) -> PodBuilder:
    container = {"name": "r", "image": "r", "restartPolicyRules": [{"action": action}]}
    return make_pod("p").set("spec.initContainers" if init else "spec.containers", [container])


def sharing_the_network(host_users: bool | None) -> PodBuilder:
    pod = make_pod("p").set("spec.hostNetwork", True)
    return pod if host_users is None else pod.set("spec.hostUsers", host_users)


@pytest.mark.parametrize(
    ("pod", "needed"),
    [
        (make_pod("p"), set()),
        (restarting(), {RESTART_ALL}),
        (restarting(init=True), {RESTART_ALL}),
        (restarting(action="Restart"), set()),
        (sharing_the_network(host_users=False), {USER_NAMESPACES}),
        (sharing_the_network(host_users=True), set()),
        (sharing_the_network(host_users=None), set()),
        (make_pod("p").set("spec.hostUsers", False), set()),
        (restarting().set("spec.hostNetwork", True).set("spec.hostUsers", False), {RESTART_ALL, USER_NAMESPACES}),
    ],
)
def test_a_spec_needs(pod: PodBuilder, needed: set[str]) -> None:
    info = pod.info()
    assert required_features(info.shape) == needed
    assert (NodeDeclaredFeatures().signature(info) is UNCONCERNED) == (not needed)


def evaluated(pod: PodInfo, *declared: list[str]) -> list[bool]:
    view = ClusterView()
    for number, features in enumerate(declared):
        view.add_or_update_node(make_node(f"n{number}").set("status.declaredFeatures", features).build())
    plugin, snapshot = NodeDeclaredFeatures(), view.snapshot()
    status, state = plugin.pre_filter(pod, snapshot)
    assert status.is_success
    verdicts = plugin.filter(state, snapshot, snapshot.nodes.name_hash.argsort() * 0 + range(snapshot.nodes.n))
    told = [(one.code, one.reasons) for one in verdicts.refusals]
    assert told in ([], [(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match Pod's required features",))])
    return [code == 0 for code in verdicts.refused.tolist()]


def test_only_nodes_that_declare_all_features_pass() -> None:
    both = restarting().set("spec.hostNetwork", True).set("spec.hostUsers", False).info()
    assert evaluated(both, [], [RESTART_ALL], ["Other", RESTART_ALL, USER_NAMESPACES]) == [False, False, True]
    assert evaluated(restarting().info(), ["Other"], [RESTART_ALL]) == [False, True]
