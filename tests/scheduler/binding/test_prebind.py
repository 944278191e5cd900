"""PreBind: what a pod's plugins have to write, and to wait for, before it is bound."""

import pytest

from policyengine.cluster.storage_objects import PersistentVolumeClaim
from policyengine.framework.events import NODE_ADD, ClusterEventWithHint
from policyengine.framework.reservation import ObjectPatch, Plan
from policyengine.framework.status import SKIP, SUCCESS, Code, Status
from policyengine.scheduler.messages import (
    BindFailure,
    ObjectDeleted,
    ObjectPatched,
    ObjectPatchFailed,
    PodDeleted,
    ProfileReplaced,
)
from tests.scheduler.driver import Driver, binds, conditions, node, notes, pod, profile, victims
from tests.scheduler.storage import claim, patches

CLAIM = "PersistentVolumeClaim"
WAIT = Status(Code.WAIT)


class Preparer:
    """Annotates claim `c`, twice if told so, and answers as told."""

    name = "Preparer"
    kinds = (CLAIM,)

    def __init__(self, *answers, patches=1, status=SUCCESS, assumes=True):
        self.answers = list(answers)
        self.patches = patches
        self.status = status
        self.assumes = assumes
        self.asked = 0

    def events_to_register(self):
        return [ClusterEventWithHint(NODE_ADD)]

    def plan(self, pod, node_name, snapshot):
        found = snapshot.objects(PersistentVolumeClaim)["default/c"]
        meta = found.metadata
        patch = ObjectPatch(CLAIM, "default", "c", meta.uid, meta.resource_version, {"metadata": {}})
        mine = claim("c", int(meta.resource_version), node=node_name)
        assumed = ((CLAIM, mine),) if self.assumes else ()
        return self.status, Plan(assumed, (patch,) * self.patches, 600.0, "too late")

    def prepared(self, pod, node_name, plan, snapshot):
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def started(*answers, **options):
    preparer = Preparer(*answers, **options)
    driver = Driver(profile(pre_bind=(preparer,)))
    driver.observe(claim("c", 5))
    driver.see(node("n1"), pod("p"))
    return driver, preparer


def shown(driver):
    """Which node the claim, as decisions see it, says."""
    return driver.state.view.objects(PersistentVolumeClaim)["default/c"].metadata.annotations.get(
        "volume.kubernetes.io/selected-node"
    )


def test_a_plugin_that_skips_keeps_nobody_waiting():
    driver, _ = started(status=SKIP)
    assert binds(driver.cycle()) == {"p": "n1"}


def test_the_binding_follows_the_patch_the_watch_and_the_plugins_word():
    driver, preparer = started(SUCCESS)
    (asked,) = driver.cycle()
    assert (asked.uid, asked.plugin, asked.patch.resource_version) == ("p", "Preparer", "5")
    assert (driver.places("p"), shown(driver)) == (["waiting at prebind"], "n1")
    assert not driver.state.may_bind("p")
    assert driver.send(ObjectPatched(asked, "9")) == []
    assert preparer.asked == 0
    driver.observe(claim("c", 8))
    assert (driver.until_wakeup(), preparer.asked) == ([], 0)
    driver.observe(claim("c", 9, node="n1"))
    assert binds(driver.until_wakeup()) == {"p": "n1"}
    assert driver.places("p") == ["binding"]
    assert driver.told("p")[-4:] == ["reserved", "preparing", "written", "prepared"]


def test_a_watch_that_is_faster_than_the_answer_changes_nothing():
    driver, _ = started(SUCCESS)
    (asked,) = driver.cycle()
    driver.observe(claim("c", 9, node="n1"))
    assert driver.until_wakeup() == []
    assert binds(driver.send(ObjectPatched(asked, "9"))) == {"p": "n1"}


def test_a_plugin_that_waits_is_asked_again_when_an_object_it_reads_changes():
    driver, preparer = started(WAIT, WAIT, SUCCESS)
    driver.send(ObjectPatched(patches(driver.cycle())[0], "6"))
    driver.observe(claim("c", 6))
    driver.until_wakeup()
    driver.see(pod("other", cpu="64"))
    assert (driver.wait(1), preparer.asked) == ([], 1)
    driver.observe(claim("c", 7))
    assert driver.until_wakeup() == []
    driver.observe(claim("c", 8))
    assert binds(driver.until_wakeup()) == {"p": "n1"}


def test_patches_of_one_object_are_made_one_after_the_other_each_on_the_version_before():
    driver, _ = started(SUCCESS, patches=3)
    versions = []
    (asked,) = driver.cycle()
    for version in ("6", "7"):
        versions.append(asked.patch.resource_version)
        (asked,) = driver.send(ObjectPatched(asked, version))
    assert [*versions, asked.patch.resource_version] == ["5", "6", "7"]
    driver.send(ObjectPatched(asked, "8"))
    driver.observe(claim("c", 8))
    assert binds(driver.until_wakeup()) == {"p": "n1"}


@pytest.mark.parametrize("failure", [one for one in BindFailure if one is not BindFailure.WITHDRAWN])
def test_a_patch_that_is_not_made_ends_the_attempt(failure):
    told = [("FailedScheduling", 'running PreBind plugin "Preparer": changed')]
    if failure is BindFailure.OVERLOADED:
        told = []
    driver, _ = started()
    (asked,) = driver.cycle()
    assert notes(driver.send(ObjectPatchFailed(asked, failure, "changed"))) == told
    assert (driver.places("p"), shown(driver)) == (["backoff"], None)
    assert int(driver.state.view.nodes.requested("cpu")[0]) == 0


def test_an_overloaded_server_is_given_the_time_it_asks_for():
    driver, _ = started()
    (asked,) = driver.cycle()
    driver.send(ObjectPatchFailed(asked, BindFailure.OVERLOADED, "busy", 20.0))
    driver.wait(19.0)
    assert driver.places("p") == ["backoff"]


@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        (Status(Code.ERROR, ("gone",)), "SchedulerError", 'running PreBind plugin "Preparer": gone'),
        (OSError("odd"), "SchedulerError", 'running PreBind plugin "Preparer": odd'),
        (Status(Code.UNSCHEDULABLE, ("taken",)), "Unschedulable", "0/1 nodes are available: 1 taken."),
    ],
)
def test_a_plugin_that_refuses_ends_the_attempt(answer, reason, text):
    driver, _ = started(answer)
    driver.send(ObjectPatched(patches(driver.cycle())[0], "6"))
    driver.observe(claim("c", 6))
    assert conditions(driver.until_wakeup()) == [(reason, text)]
    assert driver.places("p") == ["backoff"]


def test_ten_minutes_are_enough():
    driver, _ = started(WAIT, WAIT)
    driver.send(ObjectPatched(patches(driver.cycle())[0], "6"))
    driver.observe(claim("c", 6))
    driver.until_wakeup()
    assert driver.state.next_wakeup() == driver.now + 600
    actions = driver.until_wakeup()
    assert conditions(actions) == [("SchedulerError", 'running PreBind plugin "Preparer": too late')]
    assert driver.places("p") == ["backoff"]


def test_an_answer_to_an_earlier_attempt_is_not_taken_for_this_ones():
    driver, _ = started()
    (first,) = driver.cycle()
    driver.see(node("n1").unschedulable())
    driver.see(node("n1"))
    (second,) = driver.cycle()
    assert first.decision != second.decision
    assert driver.send(ObjectPatchFailed(first, BindFailure.CONFLICT, "changed")) == []
    assert driver.places("p") == ["waiting at prebind"]


@pytest.mark.parametrize("how", ["deleted", "being deleted", "bound elsewhere", "bound by somebody else", "node gone"])
def test_a_pod_that_goes_while_it_is_prepared_gives_everything_back(how):
    driver, _ = started()
    driver.see(node("n2", cpu="0"))
    (asked,) = driver.cycle()
    if how == "deleted":
        driver.send(PodDeleted("default", "p"))
    elif how == "being deleted":
        driver.see(pod("p").deleting())
    elif how == "node gone":
        driver.see(node("n1").unschedulable())
        assert driver.places("p") == ["active"]
    else:
        driver.see(pod("p").node("n2" if how == "bound elsewhere" else "n1"))
        assert driver.places("p") == ["bound"]
    assert shown(driver) is None
    assert driver.send(ObjectPatched(asked, "6")) == []
    assert driver.state.bindings_under_way == 0


def test_a_pod_that_is_preempted_before_its_binding_is_not_deleted_and_tried_again_after_a_backoff():
    """CancelPod (framework/runtime/pods_in_prebind_map.go, v1.36)."""
    driver, _ = started(WAIT)
    (asked,) = driver.cycle()
    driver.see(node("n1", pods="1"), pod("high").priority(10))
    actions = driver.cycle(1)
    assert victims(actions) == []
    assert ("SchedulerError", "preempted by DefaultPreemption") in conditions(actions)
    assert (driver.places("p"), shown(driver)) == (["backoff"], None)
    assert driver.send(ObjectPatched(asked, "6")) == []


def test_a_second_pod_cannot_assume_what_the_first_has_assumed():
    driver, _ = started()
    driver.see(pod("q"))
    actions = driver.cycle()
    assert len(patches(actions)) == 1
    reason = 'running Reserve plugin "Preparer": cannot assume PersistentVolumeClaim `default/c`: '
    assert conditions(actions) == [("SchedulerError", reason + "another pod is about to change it")]
    assert sorted(driver.places("p", "q")) == ["backoff", "waiting at prebind"]


def test_an_object_that_is_gone_has_been_seen():
    driver, preparer = started(Status(Code.ERROR, ("claim is gone",)))
    driver.send(ObjectPatched(patches(driver.cycle())[0], "6"))
    driver.send(ObjectDeleted(CLAIM, "default", "c"))
    driver.until_wakeup()
    assert (preparer.asked, driver.places("p")) == (1, ["backoff"])


def test_the_policy_that_decided_is_asked_to_the_end():
    driver, preparer = started(SUCCESS)
    (asked,) = driver.cycle()
    driver.send(ProfileReplaced(profile(pre_bind=(Preparer(),), policy_hash="new")))
    driver.observe(claim("c", 6))
    (bind,) = driver.send(ObjectPatched(asked, "6"))
    assert bind.policy_hash != "new"
    assert preparer.asked == 1


def test_a_plugin_without_its_methods_is_a_bug():
    with pytest.raises(TypeError, match="is no PreBind plugin"):
        Driver(profile(pre_bind=(object(),)))
