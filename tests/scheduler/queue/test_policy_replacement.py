from dataclasses import replace

from policyengine.scheduler.queue import policy_replacement
from tests.scheduler.driver import Rule
from tests.scheduler.invariants import validate_queue
from tests.scheduler.queue.queues import add, info, place, queue, refuse, rules


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
