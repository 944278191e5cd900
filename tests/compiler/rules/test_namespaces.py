"""What rules read of the namespaces that pods are in."""

from __future__ import annotations

from policyengine.cluster.objects import decode
from policyengine.cluster.workload_objects import Namespace
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import DeleteVictim
from policyengine.scheduler.messages import ObjectDeleted, ObjectObserved
from tests.builders import PodBuilder, make_node, make_pod
from tests.scheduler.driver import Driver, binds

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


def test_a_pod_goes_where_its_namespace_says() -> None:
    driver = cluster(OWN)
    driver.send(named("x", team="b"))
    driver.see(pod("p", "x").scheduler("s"))
    assert placed(driver) == {"p": "b"}


def test_a_pod_of_an_unknown_namespace_has_no_labels_of_it() -> None:
    driver = cluster(f'filter "none" {{ require {TEAM} == "none" && pod.namespaceAnnotations.size() == 0 }}')
    driver.see(pod("p", "x").scheduler("s"))
    assert placed(driver).keys() == {"p"}


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


def test_pods_of_a_list_are_told_by_their_namespaces() -> None:
    alone = f"require node.pods.all(p, {TEAM.replace('pod', 'p')} == {TEAM})"
    driver = cluster(f'filter "alone" {{ {alone} else "shared" }}')
    driver.send(named("x", team="x"))
    driver.send(named("y", team="y"))
    driver.see(*(pod(f"{name}-old", "x").node(name) for name in ("a", "b")))
    driver.see(pod("p", "y").scheduler("s"))
    assert "p" not in placed(driver)
    driver.send(named("x", 2, team="y"))
    driver.wait(2.0)
    assert placed(driver).keys() == {"a-old", "b-old", "p"}


def test_the_queue_serves_by_what_namespaces_say_and_follows_them() -> None:
    driver = cluster('queue { order by toInt(pod.namespaceLabels[?"rank"]).orValue(0) desc }')
    driver.send(named("x", rank="1"))
    driver.send(named("y", rank="2"))
    driver.see(pod("p", "x").scheduler("s"), pod("q", "y").scheduler("s"))
    driver.send(named("x", 2, rank="3"))
    assert list(binds(driver.cycle())) == ["p", "q"]


def test_victims_are_told_by_their_namespaces() -> None:
    driver = cluster('preempt { victims: victim.namespaceLabels[?"spot"].hasValue() }')
    driver.send(named("x", spot=""))
    driver.see(pod("keeps", "y").node("a").req(cpu="4"), pod("goes", "x").node("b").req(cpu="4"))
    driver.see(pod("p", "y").scheduler("s").req(cpu="4").priority(5))
    assert [action.uid for action in driver.cycle() if isinstance(action, DeleteVictim)] == ["goes"]


def test_a_namespace_that_goes_takes_its_labels_with_it() -> None:
    driver = cluster(f'filter "none" {{ require {TEAM} == "none" }}')
    driver.send(named("x", team="a"))
    driver.see(pod("p", "x").scheduler("s"))
    assert placed(driver) == {}
    driver.send(ObjectDeleted("Namespace", "", "x"))
    driver.wait(2.0)
    assert placed(driver).keys() == {"p"}
