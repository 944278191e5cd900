"""What changes nothing changes no decision: rows in another order, other names, a node that nobody asks about,
everything twice as large, a text in another style; and one filter more only takes nodes away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile
from policyengine.language.diagnostics import Source
from policyengine.language.format import format_source
from policyengine.policy_compiler import compile_files
from tests.compiler.naive_text import quantity_of
from tests.compiler.worlds import Manifest, PlainNode, drawn_pod, drawn_world, view_of
from tests.fuzz.policies import Written

Decision = dict[str, int | str]
"""A node -> its total, or the rule that refuses it."""
NAMES = re.compile(r"\b(name|uid|node\b(?!\.)|random|hash|pods|nodes|nominated)\b")
"""What may tell one name from another."""


def decision(profile: Profile, manifests: list[Manifest]) -> Decision:
    view = view_of(manifests)
    snapshot, evaluator = view.snapshot(), Evaluator(profile)
    diagnosis = evaluator.filter(view.pods["me"], snapshot)
    scored = evaluator.score(view.pods["me"], snapshot, diagnosis)
    found: Decision = {name: diagnosis.refusal(row).plugin for row, name in enumerate(snapshot.nodes.names)}
    feasible = zip(scored.rows.tolist(), scored.total.tolist(), strict=True)
    return found | {snapshot.nodes.names[row]: total for row, total in feasible}


def renamed(manifests: list[Manifest]) -> list[Manifest]:
    """Nodes with names that sort the other way round."""

    def other(item: Manifest) -> Manifest:
        if item["kind"] == "Node":
            return item | {"metadata": item["metadata"] | {"name": turned(item["metadata"]["name"])}}
        spec = item.get("spec", {})
        status = item.get("status", {})
        if spec.get("nodeName"):
            item = item | {"spec": spec | {"nodeName": turned(spec["nodeName"])}}
        if status.get("nominatedNodeName"):
            item = item | {"status": status | {"nominatedNodeName": turned(status["nominatedNodeName"])}}
        return item

    return [other(item) for item in manifests]


def turned(name: str) -> str:
    return "".join(chr(ord("z") - int(letter)) if letter.isdigit() else "x" for letter in name)


def formatted(written: Written) -> Profile:
    sources = [Source(source.file, format_source(source)[0]) for source in written.sources]
    return compile_files(sources, written.params).profiles[0]


def transformed(written: Written, chance: Random) -> Iterator[str]:
    """What a change of nothing changes."""
    world = drawn_world(chance, nodes=4)
    mine = drawn_pod(chance, "me").manifest()
    manifests = [*world.manifests(), mine]
    profile, text = written.profile, written.plain.source.text
    before = decision(profile, manifests)
    if decision(profile, chance.sample(manifests, len(manifests))) != before:
        yield "objects in another order decide otherwise"
    again = formatted(written)
    if again.policy_hash != profile.policy_hash or decision(again, manifests) != before:
        yield "the formatted text decides otherwise"
    if not NAMES.search(text):
        want = {turned(name): verdict for name, verdict in before.items()}
        if decision(profile, renamed(manifests)) != want:
            yield "with other names it decides otherwise"
        more = [*manifests, PlainNode("z").manifest()]
        if not re.search("nodeCount|normalize", text) and before.items() - decision(profile, more).items():
            yield "with a node more it decides otherwise about the others"
    yield from _shrunk(written, before, manifests)


def _shrunk(written: Written, before: Decision, manifests: list[Manifest]) -> Iterator[str]:
    """One filter more, behind the others."""
    more = 'filter "one more" { require hash(node.name) % 2 == 0 && pod.priority < 50 }\n}'
    sources = [Source(s.file, s.text[:-1] + more) if s.file == "p" else s for s in written.sources]
    after = decision(compile_files(sources, written.params).profiles[0], manifests)
    if any(isinstance(verdict, int) and isinstance(before[name], str) for name, verdict in after.items()):
        yield "one filter more lets nodes pass"


# --- everything twice as large -------------------------------------------------------------------------------

SCALED = (
    *("node.free.cpu >= pod.requests.cpu * 2", "ratio(node.used.cpu, node.allocatable.cpu) < 0.75"),
    *("node.pods.map(p, p.requests.cpu).sum() * 3 <= node.capacity.cpu", "pod.requests.cpu <= node.used.cpu"),
    *(
        "nodes.map(n, n.free.cpu).max().orValue(node.free.cpu) > pod.requests.cpu",
        "node.free.cpu / node.used.cpu > 0.25",
    ),
    *("pod.limits.?cpu.orValue(pod.requests.cpu) < node.free.cpu", "pods.map(p, p.requests.cpu).sum() > node.free.cpu"),
    'node.domain("app").pods.exists(p, p.requests.cpu > pod.requests.cpu)',
)
"""Conditions that hold as well where every amount of cpu is doubled."""
RESOURCES = ("requests", "limits", "allocatable", "capacity", "overhead", "minResources")


def doubled(item: Manifest) -> Manifest:
    def part(name: str, value: object) -> object:
        if name in RESOURCES and isinstance(value, dict):
            exact = quantity_of(value.get("cpu", "0"))
            return value | ({"cpu": f"{int(exact * 2000)}m"} if exact is not None and "cpu" in value else {})
        if isinstance(value, list):
            return [part("", one) for one in value]
        return doubled(value) if isinstance(value, dict) else value

    return {name: part(name, value) for name, value in item.items()}


def scaled(seed: int) -> bool:
    """Whether a policy about amounts of cpu decides as before where all of them are doubled."""
    chance = Random(seed)
    filters = [f'filter "f{n}" {{ require {chance.choice(SCALED)} }}' for n in range(2)]
    score = "100 * ratio(node.used.cpu + pod.requests.cpu, node.allocatable.cpu)"
    text = f'policy "p" {{ base none {" ".join(filters)} score "s" weight 1 normalize minmax = {score} }}'
    profile = compile_files([Source("p", text)]).profiles[0]
    manifests = [*drawn_world(chance, nodes=4).manifests(), drawn_pod(chance, "me").manifest()]
    return decision(profile, manifests) == decision(profile, [doubled(item) for item in manifests])
