"""Random clusters that say who runs what in every way that scheduling reads, and how one is recorded."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from policyengine.cluster.kinds import BY_KIND
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.policy_compiler import compile_policy
from policyengine.recording.recorder import DirectRecording
from policyengine.recording.redaction import Redaction
from policyengine.scheduler.messages import NodeDeleted, NodeObserved, ObjectObserved, PodDeleted, PodObserved
from policyengine.trials.trial import Trial

Json = dict[str, Any]

NOW = 1_767_600_000.0
TEAMS = ("payments", "fraud", "search")
ZONES = ("zurich", "berlin", "oslo")
SECRETS = (*TEAMS, *ZONES, "acme", "gpuhall", "ledger", "intranet", "checkout", "vault")
"""Words that no recording with hidden names may have; every name is made of them."""
POLICY = """policy "shop" {
  scheduler "shop"
  filter "disks" { require pod.labels[?"disk"].orValue("none") in ["none", "ssd"] || node.labels[?"disk"].hasValue() }
  score "own" weight 2 = node.pods.filter(p, p.namespace == pod.namespace).size() > 0 ? 100 : 20
  queue { order by pod.priority desc }
}"""


def uid(number: int) -> str:
    return str(UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128)))


def meta(number: int, name: str, labels: Json, namespace: str = "", **more: Any) -> Json:
    found = {"name": name, "uid": uid(number), "labels": labels, "annotations": {"owner": f"acme-{name}"}}
    return found | ({"namespace": namespace} if namespace else {}) | more


def node(chance: Random, number: int) -> Json:
    name = f"gpuhall-{number}.intranet"
    zone = chance.choice(ZONES)
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, "rack": str(number % 3)}
    labels |= {"disk": chance.choice(("ssd", "vault"))} if chance.random() < 0.5 else {}
    taints = [{"key": "team", "value": chance.choice(TEAMS), "effect": "NoSchedule"}] if chance.random() < 0.3 else []
    images = [{"names": [f"intranet/acme/{chance.choice(TEAMS)}:latest"], "sizeBytes": 900 << 20}]
    amounts = {"cpu": chance.choice(("2", "4")), "memory": "8Gi", "pods": "6"}
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    status = {"allocatable": amounts, "capacity": amounts, "images": images, "conditions": ready}
    return {"metadata": meta(number, name, labels), "spec": {"taints": taints}, "status": status}


def pod(chance: Random, number: int, claims: bool) -> Json:
    team = chance.choice(TEAMS)
    labels = {"app": f"{team}-checkout", "disk": chance.choice(("ssd", "vault", "none")), "size": str(number % 4)}
    spec: Json = {
        "schedulerName": "shop",
        "priority": chance.choice((0, 0, 10)),
        "containers": [
            {"name": "ledger", "image": f"intranet/acme/{team}", "resources": {"requests": {"cpu": "900m"}}}
        ],
        "tolerations": [{"key": "team", "operator": "Equal", "value": team}],
    }
    same = {"labelSelector": {"matchLabels": {"app": labels["app"]}}}
    what = chance.randrange(6)
    if what == 0:
        spec["nodeSelector"] = {"topology.kubernetes.io/zone": chance.choice(ZONES)}
    elif what == 1:
        spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [spread | same]
    elif what == 2:
        term = same | {"topologyKey": "kubernetes.io/hostname"}
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": terms}
    elif what == 3:
        rule = {"key": "metadata.name", "operator": "NotIn", "values": [f"gpuhall-{chance.randrange(4)}.intranet"]}
        more = {"key": "rack", "operator": "Gt", "values": ["0"]}
        required = {"nodeSelectorTerms": [{"matchFields": [rule], "matchExpressions": [more]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    elif what == 4 and claims:
        spec["volumes"] = [{"name": "vault", "ephemeral": {}}]
    elif what == 5 and claims:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"ledger-{team}"}}]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{team}-checkout", "uid": uid(TEAMS.index(team))}
    metadata = meta(1000 + number, f"{team}-{number}", labels, f"acme-{team}")
    return {"metadata": metadata | {"ownerReferences": [owner | {"controller": True}]}, "spec": spec}


def storage() -> list[tuple[str, Json]]:
    """A volume for each team's claim, and the claims that ephemeral volumes have had made for them, in one zone."""
    found: list[tuple[str, Json]] = []
    for number, team in enumerate(TEAMS):
        names = [f"ledger-{team}", *(f"{team}-{index}-vault" for index in range(12))]
        for index, name in enumerate(names):
            at = 5000 + number * 100 + index
            zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [ZONES[number]]}
            reach = {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
            of = {"kind": "PersistentVolumeClaim", "namespace": f"acme-{team}", "name": name, "uid": uid(at)}
            owners = [{"apiVersion": "v1", "kind": "Pod", "name": f"{team}-{index - 1}", "uid": uid(999 + index)}]
            more = {"ownerReferences": [owners[0] | {"controller": True}]} if index else {}
            bound = {"pv.kubernetes.io/bind-completed": "yes"}
            claim = meta(at, name, {}, f"acme-{team}", **more) | {"annotations": bound}
            spec = {"volumeName": f"vault-{at}", "storageClassName": "vault", "accessModes": ["ReadWriteOnce"]}
            found.append(("PersistentVolumeClaim", {"metadata": claim, "spec": spec, "status": {"phase": "Bound"}}))
            volume = {
                "claimRef": of,
                "nodeAffinity": reach,
                "storageClassName": "vault",
                "capacity": {"storage": "1Gi"},
            }
            made = {"metadata": meta(at + 5000, f"vault-{at}", {}), "spec": volume, "status": {"phase": "Bound"}}
            found.append(("PersistentVolume", made))
    return found


def live(chance: Random, trial: Trial) -> None:
    """Nodes and pods come, change and go."""
    for team in TEAMS:
        space = {"metadata": meta(9000 + TEAMS.index(team), f"acme-{team}", {"team": team})}
        trial.see(ObjectObserved("Namespace", decode(BY_KIND["Namespace"].type, space)))
    for kind, item in storage():
        trial.see(ObjectObserved(kind, decode(BY_KIND[kind].type, item)))
    for number in range(5):
        trial.see(NodeObserved(decode(Node, node(chance, number))))
    for number in range(40):
        what = chance.randrange(8)
        if what < 5:
            trial.see(PodObserved(decode(Pod, pod(chance, number, number < 12))))
        elif what == 5:
            trial.see(NodeObserved(decode(Node, node(chance, chance.randrange(7)))))
        elif what == 6 and trial.cluster.pods:
            gone = trial.cluster.pods[chance.choice(sorted(trial.cluster.pods))].metadata
            trial.see(PodDeleted(gone.namespace, gone.name, gone.uid))
        elif trial.cluster.nodes and chance.random() < 0.2:
            trial.see(NodeDeleted(chance.choice(sorted(trial.cluster.nodes))))
        trial.advance(chance.choice((0.0, 1.0, 40.0)))


def lived(path: Path, seed: int, redaction: Redaction | None) -> Trial:
    """A world, recorded."""
    recording = DirectRecording(path, "0", str(seed), redaction)
    trial = Trial([compile_policy(POLICY)], NOW, driven=recording.recorded)
    live(Random(seed), trial)
    recording.close()
    return trial
