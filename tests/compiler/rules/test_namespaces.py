"""What rules read of the namespaces that pods are in."""

from __future__ import annotations

from policyengine.cluster.objects import decode
from policyengine.cluster.workload_objects import Namespace
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.messages import ObjectDeleted, ObjectObserved
from tests.builders import PodBuilder, make_node, make_pod
from tests.scheduler.driver import Driver

TEAM = 'pod.namespaceLabels[?"team"].orValue("none")'


def named(name: str, version: int = 1, **labels: str) -> ObjectObserved:
    metadata = {"name": name, "uid": name, "resourceVersion": f"{version}", "labels": labels}
    return ObjectObserved("Namespace", decode(Namespace, {"metadata": metadata}))


def pod(name: str, namespace: str) -> PodBuilder:
    return make_pod(name, namespace).uid(name)


def cluster(members: str) -> Driver:
    driver = Driver(compile_policy(f'policy "p" {{ scheduler "s" base filters {members} }}'))
    driver.see(*(make_node(name).capacity(cpu="4", memory="8Gi", pods="9").label("team", name) for name in ("a", "b")))
    return driver


def placed(driver: Driver) -> dict[str, str]:
    driver.cycle()
    return {info.name: info.node_name for info in driver.state.view.pods.values() if info.node_name}


OWN = f'filter "own" {{ require node.labels[?"team"].orValue("") == {TEAM} }}'


def test_a_waiting_pod_is_tried_when_its_namespace_gets_the_label_and_not_for_another() -> None:
    driver = cluster(OWN)
    driver.send(named("x"))
    driver.see(pod("p", "x").scheduler("s"))
    assert placed(driver) == {}
    driver.send(named("other", team="a"))
    driver.wait(2.0)
    assert driver.places("p") == ["unschedulable"]
    driver.send(named("x", 2, team="a"))
    driver.wait(2.0)
    assert placed(driver) == {"p": "a"}


def test_a_namespace_that_goes_takes_its_labels_with_it() -> None:
    driver = cluster(f'filter "none" {{ require {TEAM} == "none" }}')
    driver.send(named("x", team="a"))
    driver.see(pod("p", "x").scheduler("s"))
    assert placed(driver) == {}
    driver.send(ObjectDeleted("Namespace", "", "x"))
    driver.wait(2.0)
    assert placed(driver).keys() == {"p"}
