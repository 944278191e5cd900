"""VolumeBinding through the core: which volumes a pod takes, what is written, and what happens when it goes wrong."""

import pytest

from policyengine.cluster.storage_objects import PersistentVolume
from policyengine.scheduler.messages import BindFailure, ObjectDeleted, ObjectPatched, ObjectPatchFailed
from tests.scheduler.driver import Driver, binds, conditions, node, pod
from tests.scheduler.storage import claim, patches, storage_class, volume

PREFIX = 'running PreBind plugin "VolumeBinding": '


def driver_with(*items, nodes=("n1", "n2")):
    driver = Driver()
    driver.observe(storage_class("local"), storage_class("made", "example.com/disks"), *items)
    driver.see(*(node(name).label("kubernetes.io/hostname", name) for name in nodes))
    return driver


def asked(actions):
    """(kind, name, patch) of each patch asked for."""
    return [(one.patch.kind, one.patch.key, one.patch.patch) for one in patches(actions)]


def test_a_static_volume_is_taken_on_the_node_that_reaches_it_and_the_pod_bound_when_its_claim_is():
    driver = driver_with(claim("c"), volume("v", 3, node="n2")).showing(pod("p").pvc("c"))
    (one,) = driver.cycle()
    assert (one.patch.kind, one.patch.name, one.patch.resource_version, one.patch.uid) == (
        "PersistentVolume",
        "v",
        "3",
        "uid-v",
    )
    ref = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default", "name": "c", "uid": "uid-c"}
    assert one.patch.patch == {
        "spec": {"claimRef": {**ref, "resourceVersion": "1"}},
        "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
    }
    driver.send(ObjectPatched(one, "4"))
    driver.observe(volume("v", 4, node="n2", taken_by="c"))
    assert driver.until_wakeup() == []
    driver.observe(claim("c", 5, volume="v", bound=True))
    assert binds(driver.until_wakeup()) == {"p": "n2"}


def test_a_volume_that_has_to_be_made_is_asked_for_by_naming_the_node():
    driver = driver_with(claim("c", of="made"), nodes=("n1",)).showing(pod("p").pvc("c"))
    (one,) = driver.cycle()
    assert asked([one]) == [
        (
            "PersistentVolumeClaim",
            "default/c",
            {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}},
        )
    ]
    driver.send(ObjectPatched(one, "2"))
    driver.observe(claim("c", 2, of="made", node="n1"))
    driver.until_wakeup()
    driver.observe(claim("c", 4, of="made", node="n1", volume="new", bound=True))
    assert driver.until_wakeup() == []
    driver.observe(volume("new", 3, of="made", node="n1", taken_by="c"))
    assert binds(driver.until_wakeup()) == {"p": "n1"}


def test_two_pods_never_take_one_volume():
    driver = driver_with(claim("a"), claim("b"), volume("v")).showing(pod("p").pvc("a"), pod("q").pvc("b"))
    actions = driver.cycle()
    assert [one.patch.name for one in patches(actions)] == ["v"]
    ((reason, message),) = conditions(actions)
    assert reason == "Unschedulable"
    assert "2 node(s) didn't find available persistent volumes to bind." in message


def test_a_pod_that_wanted_the_volume_is_woken_when_it_is_given_back():
    driver = driver_with(claim("a"), claim("b"), volume("v")).showing(pod("p").pvc("a"), pod("q").pvc("b"))
    (one,) = patches(driver.cycle())
    other = "q" if one.uid == "p" else "p"
    assert driver.places(one.uid, other) == ["waiting at prebind", "unschedulable"]
    driver.now += 20
    driver.send(ObjectPatchFailed(one, BindFailure.REFUSED, "forbidden"))
    assert driver.places(other) == ["active"]
    assert [found.uid for found in patches(driver.cycle(1))] == [other]


def test_the_smallest_volume_that_fits_is_taken_and_each_claim_gets_its_own():
    driver = driver_with(
        claim("small"), claim("large", size="5Gi"), volume("v10", size="10Gi"), volume("v5", size="5Gi")
    )
    driver.see(pod("p").pvc("large").pvc("small"))
    (first,) = driver.cycle()
    (second,) = driver.send(ObjectPatched(first, "2"))
    assert {one.patch.name: one.patch.patch["spec"]["claimRef"]["name"] for one in (first, second)} == {
        "v5": "small",
        "v10": "large",
    }


def test_a_volume_meant_for_the_claim_by_name_only_gets_the_uid_and_no_mark():
    driver = driver_with(claim("c"), volume("v", taken_by="c", with_uid=False)).showing(pod("p").pvc("c"))
    ((_, name, patch),) = asked(driver.cycle())
    assert (name, patch["spec"]["claimRef"]["uid"], "metadata" in patch) == ("v", "uid-c", False)


def test_what_an_earlier_attempt_has_written_is_not_written_again():
    driver = driver_with(claim("c"), volume("v", 2, taken_by="c")).showing(pod("p").pvc("c"))
    assert driver.cycle() == []
    assert driver.places("p") == ["waiting at prebind"]
    driver.observe(claim("c", 3, volume="v", bound=True))
    assert binds(driver.until_wakeup())


def test_a_second_pod_of_the_claim_waits_for_what_the_first_one_writes():
    driver = driver_with(claim("c", of="made")).showing(pod("p").pvc("c"), pod("q").pvc("c"))
    (one,) = driver.cycle()
    chosen = one.patch.patch["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
    assert driver.places("p", "q") == ["waiting at prebind", "waiting at prebind"]
    driver.send(ObjectPatched(one, "2"))
    driver.observe(claim("c", 2, of="made", node=chosen))
    driver.observe(volume("new", 3, of="made", taken_by="c"))
    driver.observe(claim("c", 4, of="made", node=chosen, volume="new", bound=True))
    assert binds(driver.until_wakeup()) == {"p": chosen, "q": chosen}


def test_a_second_pod_of_the_claim_does_not_wait_for_what_is_not_written_any_more():
    driver = driver_with(claim("c", of="made")).showing(pod("p").pvc("c"), pod("q").pvc("c"))
    (one,) = driver.cycle()
    driver.send(ObjectPatchFailed(one, BindFailure.OVERLOADED, "busy"))
    other = "q" if one.uid == "p" else "p"
    text = PREFIX + 'binding volumes: selectedNode annotation reset for PVC "c"'
    assert conditions(driver.until_wakeup()) == [("SchedulerError", text)]
    assert driver.places(one.uid, other) == ["backoff", "backoff"]


ELSEWHERE = 'node affinity doesn\'t match node "n1": no matching NodeSelectorTerms'
GONE = ObjectDeleted("PersistentVolumeClaim", "default", "c")
ON_ANOTHER_NODE = [
    volume("new", 6, of="made", node="n2"),
    claim("c", 7, of="made", node="n1", volume="new", bound=True),
]


@pytest.mark.parametrize(
    ("of", "then", "text"),
    [
        ("made", [claim("c", 7, of="made")], 'selectedNode annotation reset for PVC "c"'),
        ("made", [claim("c", 7, of="made", node="n2")], 'provisioning failed for PVC "c"'),
        ("made", ON_ANOTHER_NODE, f'pv "new" {ELSEWHERE}'),
        ("made", [GONE], 'failed to check provisioning pvc: persistentvolumeclaims "default/c" not found'),
        ("local", [volume("v", 7)], 'ClaimRef got reset for pv "v"'),
        ("local", [volume("v", 7, taken_by="other")], 'ClaimRef got reset for pv "v"'),
        ("local", [volume("v", 7, taken_by="c", node="n2")], f'pv "v" {ELSEWHERE}'),
        (
            "local",
            [ObjectDeleted("PersistentVolume", "", "v")],
            'failed to check binding: persistentvolumes "v" not found',
        ),
        ("local", [GONE], 'failed to check binding: persistentvolumeclaims "default/c" not found'),
    ],
)
def test_a_volume_that_is_not_made_or_is_lost_again_ends_the_attempt_in_kube_schedulers_words(of, then, text):
    driver = driver_with(claim("c", of=of), volume("v"), nodes=("n1",)).showing(pod("p").pvc("c"))
    driver.send(ObjectPatched(patches(driver.cycle())[0], "2"))
    driver.observe(claim("c", 2, of="made", node="n1") if of == "made" else volume("v", 2, taken_by="c"))
    driver.until_wakeup()
    for item in then:
        driver.send(item) if isinstance(item, ObjectDeleted) else driver.observe(item)
    assert conditions(driver.until_wakeup()) == [("SchedulerError", f"{PREFIX}binding volumes: {text}")]
    assert driver.places("p") == ["backoff"]


def test_a_claim_that_nobody_binds_is_waited_for_ten_minutes():
    driver = driver_with(claim("c"), volume("v")).showing(pod("p").pvc("c"))
    driver.send(ObjectPatched(patches(driver.cycle())[0], "2"))
    driver.observe(volume("v", 2, taken_by="c"))
    driver.until_wakeup()
    driver.wait(599)
    assert driver.places("p") == ["waiting at prebind"]
    assert conditions(driver.wait(1)) == [("SchedulerError", PREFIX + "binding volumes: context deadline exceeded")]


def test_a_conflict_frees_the_volume_and_tells_why():
    driver = driver_with(claim("c"), volume("v")).showing(pod("p").pvc("c"))
    (one,) = driver.cycle()
    text = 'Operation cannot be fulfilled on persistentvolumes "v": the object has been modified'
    assert conditions(driver.send(ObjectPatchFailed(one, BindFailure.CONFLICT, text))) == [
        ("SchedulerError", PREFIX + text)
    ]
    assert driver.state.view.objects(PersistentVolume)["v"].spec.claim_ref is None


def test_a_claim_mounted_twice_takes_one_volume():
    driver = driver_with(claim("c"), volume("v"), volume("w"))
    driver.see(pod("p").pvc("c", name="one").pvc("c", name="two"))
    (one,) = driver.cycle()
    assert driver.send(ObjectPatched(one, "2")) == []
