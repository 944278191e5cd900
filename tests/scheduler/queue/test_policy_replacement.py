from dataclasses import replace

from policyengine.scheduler.queue import policy_replacement
from tests.scheduler.driver import Rule
from tests.scheduler.invariants import validate_queue
from tests.scheduler.queue.queues import add, info, place, pop, queue, refuse, rules


def test_a_new_policy_wakes_only_pods_whose_rule_changed_or_vanished():
    def rule(name, fingerprint):
        return Rule(name, lambda pod, node: None, fingerprint=fingerprint)

    line = queue(rule("kept", "1"), rule("changed", "1"), rule("vanished", "1"))
    for name in ("kept", "changed", "vanished"):
        add(line, info(name))
        refuse(line, name, 10.0, plugins=frozenset({name}))
    after = replace(rules(rule("kept", "1"), rule("changed", "2")), policy_hash="h2")
    policy_replacement.replace_profile(line, after, [], (), 100.0)
    validate_queue(line)
    assert [place(line, name).value for name in ("kept", "changed", "vanished")] == [
        "unschedulable",
        "active",
        "active",
    ]


def test_a_new_policy_orders_and_admits_anew():
    line = queue()
    add(line, info("a", rank="1"), info("b", rank="2"), info("held", gang="g", min="2"))
    by_rank = replace(rules(), queue_key=lambda pod, at: (-int(pod.labels.get("rank", "0")), at), gangs=())
    policy_replacement.replace_profile(line, by_rank, [queued.pod for queued in line], (), 1.0)
    assert [pop(line) for _ in range(3)] == ["b", "a", "held"]
