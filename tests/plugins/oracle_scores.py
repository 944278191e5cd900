"""The scores, as the documentation defines them, one node at a time; see `oracle`."""

from __future__ import annotations

import math

from tests.plugins.oracle import (
    Cluster,
    Json,
    affinity_terms,
    constraints_of,
    domain_counts,
    labels_of,
    matching_on,
    means,
    nonzero_of,
    requests_of,
    term_matches,
    tolerated,
)

WEIGHTS = {"TaintToleration": 3, "NodeAffinity": 2, "PodTopologySpread": 2, "InterPodAffinity": 2}


def taint_scores(cluster: Cluster, pod: Json, nodes: list[Json]) -> list[int] | None:
    counts = [
        sum(
            taint["effect"] == "PreferNoSchedule" and not tolerated(pod, taint)
            for taint in node["spec"].get("taints", [])
        )
        for node in nodes
    ]
    most = max(counts)
    return [100 - 100 * count // most if most else 100 for count in counts]


def node_affinity_scores(cluster: Cluster, pod: Json, nodes: list[Json]) -> list[int] | None:
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution")
    if not preferred:
        return None
    sums = [sum(one["weight"] for one in preferred if term_matches(one["preference"], node)) for node in nodes]
    most = max(sums)
    return [100 * one // most if most else 0 for one in sums]


def fit_scores(cluster: Cluster, pod: Json, nodes: list[Json]) -> list[int] | None:
    scores = []
    for node in nodes:
        parts = []
        for resource in ("cpu", "memory"):
            offered = cluster.allocatable(node, resource)
            if offered:
                wanted = cluster.used(node, resource, nonzero_of) + nonzero_of(pod)[resource]
                parts.append(max(offered - wanted, 0) * 100 // offered)
        scores.append(sum(parts) // len(parts) if parts else 0)
    return scores


def balance(cluster: Cluster, node: Json, extra: dict[str, int]) -> int:
    fractions = [
        min((cluster.used(node, resource) + extra.get(resource, 0)) / cluster.allocatable(node, resource), 1.0)
        for resource in ("cpu", "memory")
        if cluster.allocatable(node, resource)
    ]
    deviation = abs(fractions[0] - fractions[1]) / 2 if len(fractions) == 2 else 0.0
    return int((1 - deviation) * 100)


def balanced_scores(cluster: Cluster, pod: Json, nodes: list[Json]) -> list[int] | None:
    wanted = requests_of(pod)
    if not wanted.get("cpu") and not wanted.get("memory"):
        return None
    return [50 + (50 + balance(cluster, node, wanted) - balance(cluster, node, {})) // 2 for node in nodes]


def image_scores(cluster: Cluster, pod: Json, nodes: list[Json]) -> list[int] | None:
    containers = pod["spec"]["containers"] + pod["spec"].get("initContainers", [])
    sizes = [
        {name: image["sizeBytes"] for image in node["status"]["images"] for name in image["names"]}
        for node in cluster.nodes
    ]
    low, high = 23 * 2**20, 1000 * 2**20 * len(containers)
    scores = []
    for node in nodes:
        own = {name: image["sizeBytes"] for image in node["status"]["images"] for name in image["names"]}
        total = 0
        for container in containers:
            name = container["image"] if ":" in container["image"] else container["image"] + ":latest"
            if name in own:
                total += int(own[name] * (sum(name in one for one in sizes) / len(cluster.nodes)))
        scores.append(100 * (min(max(total, low), high) - low) // (high - low))
    return scores


def spread_scores(cluster: Cluster, pod: Json, nodes: list[Json]) -> list[int] | None:
    constraints = constraints_of(pod, "ScheduleAnyway")
    if not constraints:
        return None
    scored = [node for node in nodes if all(one["topologyKey"] in labels_of(node) for one in constraints)]
    sums = {node["metadata"]["name"]: 0.0 for node in scored}
    for constraint in constraints:
        key = constraint["topologyKey"]
        host = key == "kubernetes.io/hostname"
        domains = len(scored) if host else len({labels_of(node)[key] for node in scored})
        counts = domain_counts(cluster, constraint, constraints, pod)
        for node in scored:
            here = matching_on(cluster, constraint, pod, node) if host else counts.get(labels_of(node)[key], 0)
            sums[node["metadata"]["name"]] += here * math.log(domains + 2) + constraint["maxSkew"] - 1
    whole = {name: math.floor(one + 0.5) for name, one in sums.items()}
    most, least = max(whole.values(), default=0), min(whole.values(), default=0)
    return [_even(whole.get(node["metadata"]["name"]), most, least) for node in nodes]


def _even(score: int | None, most: int, least: int) -> int:
    if score is None:
        return 0
    return 100 if most == 0 else 100 * (most + least - score) // most


def affinity_scores(cluster: Cluster, pod: Json, nodes: list[Json]) -> list[int] | None:
    effects: list[tuple[str, str, int]] = []

    def note(term: Json, where: Json, weight: int) -> None:
        key = term["topologyKey"]
        if key in labels_of(where):
            effects.append((key, labels_of(where)[key], weight))

    for where, other in cluster.standing():
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
            for one in affinity_terms(pod, kind, "preferred"):
                if means(cluster, one["podAffinityTerm"], pod, other, None):
                    note(one["podAffinityTerm"], where, sign * one["weight"])
            for one in affinity_terms(other, kind, "preferred"):
                if means(cluster, one["podAffinityTerm"], other, pod, {}):
                    note(one["podAffinityTerm"], where, sign * one["weight"])
        for term in affinity_terms(other, "podAffinity", "required"):
            if means(cluster, term, other, pod, {}):
                note(term, where, 1)
    if not effects:
        return None
    sums = [sum(w for key, value, w in effects if labels_of(node).get(key) == value) for node in nodes]
    most, least = max(sums), min(sums)
    return [int(100 * ((one - least) / (most - least))) if most > least else 0 for one in sums]


SCORES = {
    "TaintToleration": taint_scores,
    "NodeAffinity": node_affinity_scores,
    "NodeResourcesFit": fit_scores,
    "PodTopologySpread": spread_scores,
    "InterPodAffinity": affinity_scores,
    "NodeResourcesBalancedAllocation": balanced_scores,
    "ImageLocality": image_scores,
}


def scores(cluster: Cluster, pod: Json, feasible: list[str]) -> dict[str, dict[str, int]]:
    """node -> plugin -> weighted score, over the feasible nodes."""
    nodes = [node for node in cluster.nodes if node["metadata"]["name"] in feasible]
    found: dict[str, dict[str, int]] = {name: {} for name in feasible}
    if nodes:
        for plugin, score in SCORES.items():
            column = score(cluster, pod, nodes)
            for node, one in zip(nodes, column or [], strict=column is not None):
                found[node["metadata"]["name"]][plugin] = one * WEIGHTS.get(plugin, 1)
    return found
