from policyengine.cluster.view import ClusterView
from policyengine.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    WILDCARD,
    ClusterEventWithHint,
    QueueingHint,
)
from policyengine.framework.profile import Profile
from policyengine.scheduler.queue.queued_pods import QueuedPod, Strategy
from policyengine.scheduler.queue.queueing_hints import UnschedulableIndex
from tests.builders import make_pod
from tests.scheduler.driver import Rule


def allow(pod, node):
    return None


def registered(name, event, hint=None):
    return Rule(name, allow, [ClusterEventWithHint(event, hint)])


def wake_ups(*rules):
    return UnschedulableIndex(Profile("p", "s", "h", filters=rules), ClusterView())


def refused(name, *plugins, pending=()):
    pod = QueuedPod(make_pod(name).info(), 0.0)
    pod.unschedulable_plugins = frozenset(plugins) | frozenset(pending)
    pod.pending_plugins = frozenset(pending)
    return pod


def woken(index, event, old=None, new=None):
    return {
        uid: (strategy, plugin) for alike, strategy, plugin, _ in index.woken_by(event, old, new) for uid in alike.pods
    }


def test_only_the_plugins_that_refused_a_pod_are_asked():
    index = wake_ups(registered("A", NODE_ADD), registered("B", ASSIGNED_POD_DELETE))
    for pod in (refused("a", "A"), refused("b", "B")):
        index.add(pod, pod.unschedulable_plugins)
    assert woken(index, NODE_ADD) == {"a": (Strategy.AFTER_BACKOFF, "A")}
    assert woken(index, ASSIGNED_POD_DELETE) == {"b": (Strategy.AFTER_BACKOFF, "B")}


def test_a_pending_plugin_wakes_at_once_and_outdoes_the_others():
    index = wake_ups(registered("A", NODE_ADD), registered("B", NODE_ADD))
    pod = refused("p", "A", pending=["B"])
    index.add(pod, pod.unschedulable_plugins)
    assert woken(index, NODE_ADD) == {"p": (Strategy.IMMEDIATELY, "B")}


def test_a_hint_that_says_skip_leaves_the_pod_and_one_that_fails_wakes_it():
    skips = registered("A", NODE_ADD, lambda pod, old, new: QueueingHint.SKIP)
    fails = registered("B", NODE_ADD, lambda pod, old, new: 1 / 0)
    index = wake_ups(skips, fails)
    for pod in (refused("a", "A"), refused("b", "B")):
        index.add(pod, pod.unschedulable_plugins)
    told = "B, whose hint failed: division by zero"
    assert woken(index, NODE_ADD) == {"b": (Strategy.AFTER_BACKOFF, told)}
    assert index.hint(refused("b", "B"), NODE_ADD, None, None) == (Strategy.AFTER_BACKOFF, told)


def test_the_hint_sees_the_pod_and_both_objects():
    seen = []
    index = wake_ups(registered("A", NODE_ADD, lambda *given: seen.append(given) or QueueingHint.SKIP))
    pod = refused("a", "A")
    index.add(pod, pod.unschedulable_plugins)
    index.woken_by(NODE_ADD, "old", "new")
    assert seen == [(pod.pod, "old", "new")]


def test_pods_with_one_signature_are_asked_about_once():
    calls = []

    def hint(pod, old, new):
        calls.append(pod.uid)
        return QueueingHint.QUEUE

    rule = registered("A", NODE_ADD, hint)
    rule.signature = lambda pod: "same"
    index = wake_ups(rule)
    for number in range(50):
        pod = refused(f"p{number}", "A")
        index.add(pod, pod.unschedulable_plugins)
    assert len(woken(index, NODE_ADD)) == 50
    assert len(calls) == 1


def test_plugins_of_one_name_share_a_bucket_only_where_all_read_the_same():
    helped = registered(
        "A", NODE_ADD, lambda pod, old, new: QueueingHint.QUEUE if pod.uid == "p2" else QueueingHint.SKIP
    )
    helped.signature = lambda pod: pod.uid
    other = registered("A", NODE_ADD, lambda pod, old, new: QueueingHint.SKIP)
    other.signature = lambda pod: "same"
    for rules in ((helped, other), (other, helped)):
        index = wake_ups(*rules)
        for name in ("p1", "p2"):
            pod = refused(name, "A")
            index.add(pod, pod.unschedulable_plugins)
        assert set(woken(index, NODE_ADD)) == {"p2"}


def test_a_pod_refused_by_nobody_the_profile_knows_wakes_by_any_event():
    index = wake_ups(registered("A", NODE_ADD))
    pod = refused("p", "Vanished")
    index.add(pod, pod.unschedulable_plugins)
    assert set(woken(index, ASSIGNED_POD_DELETE)) == {"p"}


def test_a_wildcard_registration_wakes_by_any_event():
    index = wake_ups(registered("A", WILDCARD))
    pod = refused("p", "A")
    index.add(pod, pod.unschedulable_plugins)
    assert set(woken(index, ASSIGNED_POD_DELETE)) == {"p"}
    assert index.asks_for(ASSIGNED_POD_DELETE)


def test_a_removed_pod_leaves_nothing_behind():
    index = wake_ups(registered("A", NODE_ADD))
    pod = refused("p", "A")
    index.add(pod, pod.unschedulable_plugins)
    assert index.asks_for(NODE_ADD)
    index.remove(pod)
    assert woken(index, NODE_ADD) == {}
    assert not index.asks_for(NODE_ADD)
    assert pod.buckets == ()


def test_the_verdict_on_one_pod_is_that_on_all():
    index = wake_ups(registered("A", NODE_ADD), registered("B", NODE_ADD))
    for pod in (refused("a", "A"), refused("b", pending=["B"]), refused("c", "A", pending=["B"]), refused("d", "X")):
        index.add(pod, pod.unschedulable_plugins)
        for event in (NODE_ADD, ASSIGNED_POD_DELETE):
            found = woken(index, event).get(pod.uid, (Strategy.SKIP, ""))
            assert index.hint(pod, event, None, None)[0] is found[0]
        index.remove(pod)
