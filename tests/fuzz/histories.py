"""Generated histories of clusters under generated policies: each decision is one that a naive interpreter understands.

    python -m tests.fuzz.seeds histories [HISTORIES] [SEED]

A history is nodes and pods that come, change and go while time passes. Before each cycle the cluster is read anew,
from the objects alone, and after it what was decided is held against docs/language.md: whose turn it was, whether a pod
had to be refused, where it went, who had to go, what was held at Permit, written and logged. When nothing moves any
more, nobody waits who could go. Of the members of a gang it is only asked whether enough of them were placed.
"""

from __future__ import annotations

import re
from copy import deepcopy
from random import Random

from policyengine.cluster.kinds import BY_KIND, kind_of
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.scheduler.messages import (
    NodeDeleted,
    NodeObserved,
    ObjectDeleted,
    ObjectObserved,
    PodDeleted,
    PodObserved,
)
from policyengine.trials.trial import Driven, TrialTooLong, bare
from tests.compiler.worlds import GROUPS, Manifest, drawn_namespace, drawn_node, drawn_pod
from tests.fuzz.policies import PolicyWriter, Written
from tests.fuzz.watched_trial import Watched

TIMELESS = re.compile(r"\b(now|random|queuedAt|attempts|finished|startedAt|scheduledAt)\b")
"""What may change without an event."""


def plain_pod(chance: Random, name: str) -> Manifest:
    """A pod that only its requests and the policy keep from a node."""
    item = deepcopy(drawn_pod(chance, name).manifest())
    for field in ("nodeSelector", "volumes", "initContainers", "tolerations", "schedulingGroup"):
        item["spec"].pop(field, None)
    item["spec"]["schedulerName"] = "s"
    item["status"] = {}
    for container in item["spec"]["containers"]:
        container.pop("ports", None)
        requests = {"cpu": chance.choice(("0", "250m", "1")), "memory": chance.choice(("0", "1Mi", "1Gi"))}
        container["resources"] = {"requests": requests}
    return item


def plain_node(chance: Random, name: str) -> Manifest:
    item = deepcopy(drawn_node(chance, name).manifest())
    item["spec"]["taints"] = []
    amounts = {"cpu": chance.choice(("1", "2", "4")), "memory": chance.choice(("1Gi", "8Gi")), "pods": "4"}
    item["status"]["allocatable"] = {**item["status"]["allocatable"], **amounts}
    return item


def step(chance: Random, trial: Watched, number: int) -> None:
    """Something comes, changes or goes, or time passes."""
    what = chance.randrange(11)
    if what == 10:
        name = chance.choice(("ns", "prod"))
        if name in trial.namespaces and chance.random() < 0.3:
            del trial.namespaces[name]
            trial.see(ObjectDeleted("Namespace", "", name))
        else:
            trial.namespaces[name] = drawn_namespace(chance, name, number + 1)
            trial.see(*group_messages(trial.namespaces[name]))
    elif what < 4:
        item = plain_pod(chance, f"p{number}")
        trial.queued[item["metadata"]["uid"]] = trial.now
        trial.see(PodObserved(decode(Pod, item)))
    elif what < 6:
        trial.see(NodeObserved(decode(Node, plain_node(chance, f"n{chance.randrange(4)}"))))
    elif what == 6 and trial.cluster.nodes:
        trial.see(NodeDeleted(chance.choice(sorted(trial.cluster.nodes))))
    elif what == 7 and trial.cluster.pods:
        pod = trial.cluster.pods[chance.choice(sorted(trial.cluster.pods))]
        trial.see(PodDeleted(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid))
    else:
        trial.advance(float(chance.choice((1, 3, 30, 400))))
    trial.settle()


def policy_of(seed: int) -> Written | None:
    chance = Random(seed)
    base = chance.choice(("base none", "base filters", "base filters"))
    # A plugin is used for its filter alone: the oracle knows no plugin's score.
    more = chance.choice(("", " share 2", " use NodeResourcesFit weight 0", " disable ImageLocality"))
    more = more if base == "base filters" or "share" in more else ""
    writer = PolicyWriter(chance, depth=1 + seed % 2, head=f'scheduler "s" {base}{more}')
    writer.names()
    for make in (writer.filter, writer.score, writer.score, writer.queue, writer.preempt, writer.permit, writer.bind):
        if chance.random() < 0.5:
            make()
    for make in (writer.quota, writer.gang, writer.log, writer.log):
        if chance.random() < 0.3:
            make()
    written = writer.written()
    # What a gang's members are told of it, and for which gang room is kept, only the scheduler knows.
    known = written is not None and all(rule.waits is None for rule in written.plain.gangs)
    return written if known and written and not (written.plain.gangs and "gang." in written.plain.source.text) else None


def tried(seed: int, driven: Driven = bare) -> tuple[list[str], dict[str, int]]:
    """What no interpreter understands in one history, and its decisions. `driven`: see `Trial`."""
    written = policy_of(seed)
    if written is None:
        return [], {}
    chance = Random(seed)
    trial = Watched(written, GROUPS, driven)
    for item in GROUPS:
        trial.see(*group_messages(item))
    for number in range(3):
        trial.see(NodeObserved(decode(Node, plain_node(chance, f"n{number}"))))
    for number in range(25):
        try:
            step(chance, trial, number)
        except TrialTooLong:
            return [f"seed {seed} never comes to rest", str(written)], {"histories": 1, "decisions": trial.looked}
        if not TIMELESS.search(trial.text):
            trial.look_at_rest()
        if trial.wrong:
            break
    found = [f"seed {seed}, {one}" for one in trial.wrong[:3]]
    return found + [str(written)] * bool(found), {"histories": int(trial.looked > 0), "decisions": trial.looked}


def group_messages(item: Manifest) -> list[ObjectObserved]:
    kind = kind_of(item)
    return [ObjectObserved(kind, decode(BY_KIND[kind].type, item))]
