"""Random scenarios: a small cluster and a busy hour or two of gangs, quotas, preemption, permits and trouble."""

from __future__ import annotations

from random import Random
from typing import Any

from policyengine.trials.simulation import Simulation
from tests.scheduler.invariants import validate
from tests.trials.auditor import Auditor

LIMITS = {"red": {"cpu": 6}, "blue": {"cpu": 9}}
DELAYS = {"short": 4.0, "long": 40.0}
QUOTAS = """
  quota "red" when pod.namespace == "red" { guarantee: {cpu: 3} limit: {cpu: 6} borrow: true }
  quota "blue" when pod.namespace == "blue" { guarantee: {cpu: 2} limit: {cpu: 9} borrow: true }
"""
PERMITS = """
  permit "short" when pod.labels[?"hold"].orValue("") == "short" { delay: 4s }
  permit "long" when pod.labels[?"hold"].orValue("") == "long" { delay: 40s }
"""


def policy(permits: bool, flavour: str = "") -> str:
    return f"""
policy "world" {{
  let group = pod.labels[?"podGroup"].orValue("")
  queue {{ order by pod.priority desc }}
  gang "pod-group" when group != "" {{
    key: pod.namespace + "/" + group
    min: toInt(pod.labels[?"minAvailable"]).orValue(1)
    timeout: 60s
  }}
{QUOTAS}{PERMITS if permits else ""}{flavour}
}}"""


FLAVOURS = (
    'score "even" weight 2 = 100 * ratio(node.free.cpu, node.allocatable.cpu)',
    'score "packed" weight 5 = 100 * ratio(node.used.cpu, node.allocatable.cpu)',
)


def scenario(seed: int, permits: bool) -> dict[str, Any]:
    """The scenario of a seed."""
    random = Random(seed)
    texts = [policy(permits), *(policy(permits, flavour) for flavour in FLAVOURS)]
    return {
        "name": f"world {seed}",
        "seed": seed,
        "duration": "50min",
        "policies": [{"text": random.choice(texts)}],
        "nodes": nodes(random),
        "pods": [pods(random, number, permits) for number in range(random.randint(2, 5))],
        "changes": sorted(changes(random, texts), key=lambda one: one["at"]),
    }


def nodes(random: Random) -> list[dict[str, Any]]:
    room = {"cpu": random.choice(["2", "4", "5500m"]), "memory": "8Gi", "pods": random.choice(["4", "20"])}
    found: list[dict[str, Any]] = [
        {"name": "n", "count": random.randint(2, 4), "allocatable": room, "zones": ["a", "b"]},
        {"name": "gpu", "allocatable": {"cpu": "3"}, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
    ]
    if random.random() < 0.4:
        late = {"name": "late", "at": "8min", "lives": {"uniform": ["2min", "30min"]}}
        found.append({**late, "count": 2, "every": "4min"})
    return found


def pods(random: Random, number: int, permits: bool) -> dict[str, Any]:
    template: dict[str, Any] = {
        "name": f"t{number}",
        "count": random.randint(1, 6),
        "at": random.choice([0, 0, 60, 400]),
        "namespace": ["red", "blue", "green"],
        "requests": {"cpu": ["250m", "500m", "1", "2"], "memory": ["256Mi", "1Gi"]},
        "priority": random.choice([0, [0, 10], [0, 100, 1000]]),
        "recreate": random.random() < 0.5,
    }
    if random.random() < 0.8:
        template["runs"] = random.choice(["3min", {"exponential": "6min"}, {"uniform": ["10s", "30min"]}])
    template.update(random.choice([{"every": "2min"}, {"poisson": "1min"}, {}]))
    if random.random() < 0.4:
        size = random.randint(2, 4)
        template["gang"] = {"size": size, "min": random.randint(2, size)}
    if random.random() < 0.2:
        template["spec"] = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
    elif random.random() < 0.2:
        template["spec"] = {"nodeSelector": {"topology.kubernetes.io/zone": random.choice("ab")}}
    if permits and random.random() < 0.6:
        template["labels"] = {"hold": random.choice(["short", "long"])}
    return template


def changes(random: Random, texts: list[str]) -> list[dict[str, Any]]:
    kinds: list[dict[str, Any]] = [
        {"cordon": "n-0"},
        {"uncordon": "n-*"},
        {"drain": "n-1"},
        {"fail": "n-0", "for": random.choice(["2min", "12min"])},
        {"remove": "n-1"},
        {"node": "n-0", "allocatable": {"cpu": random.choice(["1", "8"])}},
        {"node": "n-0", "labels": {"topology.kubernetes.io/zone": "b"}},
        {"node": "gpu", "taints": []},
        {"delete": "t0*"},
        {"finish": "t1*"},
        {"policy": {"text": random.choice(texts)}},
    ]
    times = [random.randint(500, 2800) for _ in range(random.randint(0, 5))]
    return [{"at": at, **random.choice(kinds)} for at in times]


def play(seed: int, permits: bool) -> tuple[Simulation, Auditor]:
    """Play the world of a seed to its end; the auditor looks at every moment of it."""
    auditor = Auditor(LIMITS, DELAYS if permits else {})
    simulation = Simulation(scenario(seed, permits), watch=auditor.watch)
    state = simulation.play.trial.state
    while simulation.step():
        cache = {uid: pod.node_name if pod.state.value == "bound" else "" for uid, pod in state.view.pods.items()}
        auditor.compare(cache, set(state.view.nodes.names))
        waiting = auditor.pods.keys() - auditor.where.keys()
        records = simulation.play.ledger.pods
        auditor.look_at_waiting({uid: state.place(uid) for uid in waiting}, {uid: records[uid].told for uid in waiting})
        if not permits:
            assert state.bindings_under_way == 0, "I8: a binding that was answered is still under way"
    validate(state)
    return simulation, auditor
