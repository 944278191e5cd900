"""What the documentation says each plugin does, one node at a time, on plain API objects.

Naive on purpose, and sharing nothing with the plugins: the columns must say the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

Json = dict[str, Any]
Refusal = tuple[str, str, tuple[str, ...]]

UNSCHEDULABLE, UNRESOLVABLE = "Unschedulable", "UnschedulableAndUnresolvable"
SUFFIXES = {"": 1, "m": Fraction(1, 1000), "k": 10**3, "M": 10**6, "G": 10**9}
SUFFIXES |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def amount(text: str, unit: Fraction | int = 1) -> int:
    match = re.fullmatch(r"([0-9.]+)([a-zA-Z]*)", text)
    assert match
    return math.ceil(Fraction(match[1]) * SUFFIXES[match[2]] / unit)


def unit_of(resource: str) -> Fraction | int:
    return Fraction(1, 1000) if resource == "cpu" else 1


def requests_of(pod: Json, missing: Json | None = None) -> dict[str, int]:
    def of(container: Json) -> dict[str, int]:
        asked = (missing or {}) | container.get("resources", {}).get("requests", {})
        return {name: amount(text, unit_of(name)) for name, text in asked.items()}

    total: dict[str, int] = {}
    for container in pod["spec"]["containers"]:
        for name, number in of(container).items():
            total[name] = total.get(name, 0) + number
    for container in pod["spec"].get("initContainers", []):
        for name, number in of(container).items():
            total[name] = max(total.get(name, 0), number)
    return total


def nonzero_of(pod: Json) -> dict[str, int]:
    return requests_of(pod, {"cpu": "100m", "memory": "200Mi"})


class Cluster:
    """The objects, and who stands where."""

    def __init__(self, objects: Json) -> None:
        self.nodes: list[Json] = objects["nodes"]
        self.on: dict[str, list[Json]] = {node["metadata"]["name"]: [] for node in self.nodes}
        for pod in objects["pods"]:
            self.on[pod["spec"]["nodeName"]].append(pod)
        self.namespaces = {one["metadata"]["name"]: one["metadata"]["labels"] for one in objects["namespaces"]}

    def standing(self) -> Iterable[tuple[Json, Json]]:
        for node in self.nodes:
            for pod in self.on[node["metadata"]["name"]]:
                yield node, pod

    def allocatable(self, node: Json, resource: str) -> int:
        text = node["status"]["allocatable"].get(resource)
        return 0 if text is None else amount(text, unit_of(resource))

    def used(self, node: Json, resource: str, of: Callable[[Json], dict[str, int]] = requests_of) -> int:
        return sum(of(pod).get(resource, 0) for pod in self.on[node["metadata"]["name"]])


def labels_of(thing: Json) -> dict[str, str]:
    return thing["metadata"].get("labels", {})


# --- selectors


def requirement_holds(requirement: Json, labels: dict[str, str]) -> bool | None:
    """None: malformed."""
    key, operator, values = requirement["key"], requirement["operator"], requirement.get("values", [])
    value = labels.get(key)
    if any(not re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", one) for one in values):
        return None  # values must be label values, for Gt and Lt too: -5 is none
    if operator in ("In", "NotIn"):
        if not values:
            return None
        return (value in values) == (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if operator in ("Gt", "Lt"):
        try:
            bound = int(values[0])
        except ValueError:
            return None
        try:
            number = int(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return False
        return number > bound if operator == "Gt" else number < bound
    return None


def term_matches(term: Json, node: Json) -> bool:
    expressions = term.get("matchExpressions", [])
    results = [requirement_holds(one, labels_of(node)) for one in expressions]
    return bool(results) and None not in results and all(results)


def selects(selector: Json | None, labels: dict[str, str]) -> bool:
    if selector is None:
        return False
    exact = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return exact and all(requirement_holds(one, labels) for one in selector.get("matchExpressions", []))


def required_affinity_holds(pod: Json, node: Json) -> bool:
    wanted = pod["spec"].get("nodeSelector", {})
    if any(labels_of(node).get(key) != value for key, value in wanted.items()):
        return False
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(term_matches(term, node) for term in required["nodeSelectorTerms"])


def tolerated(pod: Json, taint: Json) -> bool:
    for toleration in pod["spec"].get("tolerations", []):
        operator = toleration.get("operator") or "Equal"
        if toleration.get("effect") and toleration["effect"] != taint["effect"]:
            continue
        if toleration.get("key") and toleration["key"] != taint["key"]:
            continue
        if operator in ("Gt", "Lt"):
            texts = taint["value"], toleration.get("value", "")
            if all(re.fullmatch("0|-?[1-9][0-9]*", text) and abs(int(text)) < 2**62 for text in texts):
                given, bound = map(int, texts)
                if (given > bound) if operator == "Gt" else (given < bound):
                    return True
        if operator == "Exists" or (operator == "Equal" and toleration.get("value", "") == taint["value"]):
            return True
    return False


def hard_taints_tolerated(pod: Json, node: Json) -> bool:
    taints = node["spec"].get("taints", [])
    return all(tolerated(pod, taint) for taint in taints if taint["effect"] != "PreferNoSchedule")


# --- filters, in order


def node_unschedulable(cluster: Cluster, pod: Json, node: Json) -> Refusal | None:
    cordon = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}
    if node["spec"].get("unschedulable") and not tolerated(pod, cordon):
        return "NodeUnschedulable", UNRESOLVABLE, ("node(s) were unschedulable",)
    return None


def taint_toleration(cluster: Cluster, pod: Json, node: Json) -> Refusal | None:
    if hard_taints_tolerated(pod, node):
        return None
    return "TaintToleration", UNRESOLVABLE, ("node(s) had untolerated taint(s)",)


def node_affinity(cluster: Cluster, pod: Json, node: Json) -> Refusal | None:
    if required_affinity_holds(pod, node):
        return None
    return "NodeAffinity", UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",)


def host_ports(pod: Json) -> set[tuple[str, str, int]]:
    return {
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
    }


def node_ports(cluster: Cluster, pod: Json, node: Json) -> Refusal | None:
    taken = [port for other in cluster.on[node["metadata"]["name"]] for port in host_ports(other)]
    for ip, protocol, port in host_ports(pod):
        for other_ip, other_protocol, other_port in taken:
            same_ip = ip == other_ip or "0.0.0.0" in (ip, other_ip)
            if same_ip and (protocol, port) == (other_protocol, other_port):
                reason = "node(s) didn't have free ports for the requested pod ports"
                return "NodePorts", UNSCHEDULABLE, (reason,)
    return None


def node_resources_fit(cluster: Cluster, pod: Json, node: Json) -> Refusal | None:
    reasons: list[str] = []
    hopeless = False
    if len(cluster.on[node["metadata"]["name"]]) + 1 > cluster.allocatable(node, "pods"):
        reasons.append("Too many pods")
    for resource, wanted in requests_of(pod).items():
        offered = cluster.allocatable(node, resource)
        if wanted > 0 and wanted > offered - cluster.used(node, resource):
            reasons.append(f"Insufficient {resource}")
            hopeless |= wanted > offered
    if not reasons:
        return None
    return "NodeResourcesFit", UNRESOLVABLE if hopeless else UNSCHEDULABLE, tuple(sorted(reasons))


def constraints_of(pod: Json, kind: str) -> list[Json]:
    return [one for one in pod["spec"].get("topologySpreadConstraints", []) if one["whenUnsatisfiable"] == kind]


def spread_selects(constraint: Json, pod: Json, labels: dict[str, str]) -> bool:
    keys = [key for key in constraint.get("matchLabelKeys", []) if key in labels_of(pod)]
    shared = all(labels.get(key) == labels_of(pod)[key] for key in keys)
    return shared and selects(constraint["labelSelector"], labels)


def counted(constraint: Json, pod: Json, node: Json) -> bool:
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not required_affinity_holds(pod, node):
        return False
    return constraint.get("nodeTaintsPolicy") != "Honor" or hard_taints_tolerated(pod, node)


def matching_on(cluster: Cluster, constraint: Json, pod: Json, node: Json) -> int:
    return sum(
        "deletionTimestamp" not in other["metadata"]
        and other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and spread_selects(constraint, pod, labels_of(other))
        for other in cluster.on[node["metadata"]["name"]]
    )


def domain_counts(cluster: Cluster, constraint: Json, constraints: list[Json], pod: Json) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in cluster.nodes:
        has_all = all(one["topologyKey"] in labels_of(node) for one in constraints)
        if has_all and counted(constraint, pod, node):
            value = labels_of(node)[constraint["topologyKey"]]
            counts[value] = counts.get(value, 0) + matching_on(cluster, constraint, pod, node)
    return counts


def pod_topology_spread(cluster: Cluster, pod: Json, node: Json) -> Refusal | None:
    text = "node(s) didn't match pod topology spread constraints"
    constraints = constraints_of(pod, "DoNotSchedule")
    for constraint in constraints:
        key = constraint["topologyKey"]
        if key not in labels_of(node):
            return "PodTopologySpread", UNRESOLVABLE, (f"{text} (missing required label)",)
        counts = domain_counts(cluster, constraint, constraints, pod)
        least = min(counts.values()) if len(counts) >= constraint.get("minDomains", 1) else 0
        itself = int(spread_selects(constraint, pod, labels_of(pod)))
        if counts.get(labels_of(node)[key], 0) + itself - least > constraint["maxSkew"]:
            return "PodTopologySpread", UNSCHEDULABLE, (text,)
    return None


def affinity_terms(pod: Json, kind: str, mode: str) -> list[Json]:
    return list(pod["spec"].get("affinity", {}).get(kind, {}).get(f"{mode}DuringSchedulingIgnoredDuringExecution", []))


def means(cluster: Cluster, term: Json, owner: Json, other: Json, unknown: dict[str, str] | None) -> bool:
    """Whether a term of `owner` means `other`; `unknown`: what labels an unknown namespace has, if any."""
    namespace = other["metadata"]["namespace"]
    named = term.get("namespaces", [])
    if not named and "namespaceSelector" not in term:
        named = [owner["metadata"]["namespace"]]
    chosen = term.get("namespaceSelector")
    labels = cluster.namespaces.get(namespace, unknown)
    selected = chosen == {} or (chosen is not None and labels is not None and selects(chosen, labels))
    return (namespace in named or selected) and selects(term["labelSelector"], labels_of(other))


def same_domain(key: str, one: Json, other: Json) -> bool:
    return key in labels_of(one) and labels_of(one)[key] == labels_of(other).get(key)


def inter_pod_affinity(cluster: Cluster, pod: Json, node: Json) -> Refusal | None:
    near = affinity_terms(pod, "podAffinity", "required")
    if any(term["topologyKey"] not in labels_of(node) for term in near) or not _affinity_met(cluster, near, pod, node):
        return "InterPodAffinity", UNRESOLVABLE, ("node(s) didn't match pod affinity rules",)
    for term in affinity_terms(pod, "podAntiAffinity", "required"):
        for where, other in cluster.standing():
            if means(cluster, term, pod, other, None) and same_domain(term["topologyKey"], node, where):
                return "InterPodAffinity", UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",)
    for where, other in cluster.standing():
        for term in affinity_terms(other, "podAntiAffinity", "required"):
            if means(cluster, term, other, pod, {}) and same_domain(term["topologyKey"], node, where):
                reason = "node(s) didn't satisfy existing pods anti-affinity rules"
                return "InterPodAffinity", UNSCHEDULABLE, (reason,)
    return None


def _affinity_met(cluster: Cluster, near: list[Json], pod: Json, node: Json) -> bool:
    meant = [
        where
        for where, other in cluster.standing()
        if near and all(means(cluster, term, pod, other, None) for term in near)
    ]
    if all(any(same_domain(term["topologyKey"], node, where) for where in meant) for term in near):
        return True
    nobody = not any(term["topologyKey"] in labels_of(where) for where in meant for term in near)
    return nobody and all(means(cluster, term, pod, pod, None) for term in near)


FILTERS = (
    node_unschedulable,
    taint_toleration,
    node_affinity,
    node_ports,
    node_resources_fit,
    pod_topology_spread,
    inter_pod_affinity,
)


def refusals(cluster: Any, pod: Json, filters: tuple[Callable[..., Refusal | None], ...]) -> dict[str, Refusal | None]:
    """node -> the first refusal."""
    return {
        node["metadata"]["name"]: next((r for f in filters if (r := f(cluster, pod, node)) is not None), None)
        for node in cluster.nodes
    }
