"""What a policy does: its mistakes, its tests, where it places the pods of a cluster, and what it changes against the
text before. Pure: texts in, plain data out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import Profile
from policyengine.language.diagnostics import Diagnostic, Severity, Source
from policyengine.language.parse import SourceError, decode_source, read_source
from policyengine.language.parsing.grammar import folder as grammar_folder
from policyengine.plan.comparison import Plan, compared
from policyengine.plan.membership import Memberships
from policyengine.plan.rerun import NotServed, Rerun, replaced
from policyengine.plan.tables import head, tables
from policyengine.plugins.registry import default_profile, with_default_profile
from policyengine.policy_compiler import CompileResult, compile_files
from policyengine.server.pages.playground.tried_cluster import Cluster, Json, Unusable, read
from policyengine.trials.ledger import NodeRecord, PodRecord, clock
from policyengine.trials.outcome import resources
from policyengine.trials.policy_test import TestedPolicy, in_file_tests, run_tests
from policyengine.trials.scenario import ScenarioError

FILE: Final = "playground.policy"
"""What the text is called in messages."""
SHOWN: Final = 300
"""Pods, nodes, tests and mistakes that are listed of each."""
POINTS: Final = 200
"""Moments that a picture shows."""


def evaluate(text: str, before: str, cluster: str, registry: PluginRegistry) -> Json:
    """Everything there is to say of a policy.

    Returns: `{problems, tests, notes, unusable}`, and where the policy compiles and the cluster can be played `{pods,
    nodes, series, plan}`; `plan` is None where the text before is the same.
    """
    found: Json = {"problems": [], "tests": [], "notes": [], "unusable": ""}
    try:
        result = compiled(text, registry)
        found["problems"] = [_problem(one, result) for one in result.diagnostics[:SHOWN]]
        if not result.failed:
            found["tests"] = list(islice(_tests(result, registry), SHOWN))
            found |= _played(result, before if before != text else "", cluster, registry, found["notes"])
    except Unusable as error:
        found["unusable"] = str(error)
    except ScenarioError as error:
        found["unusable"] = f"the scenario cannot be used: {error}"
    return found


def compiled(text: str, registry: PluginRegistry) -> CompileResult:
    """The policies of the text, with the libraries that come along where it imports. Raises `Unusable`."""
    if not text.strip():
        return compile_files([])
    try:
        own = decode_source(text.encode("utf-8", "surrogatepass"), FILE)
    except SourceError as error:
        raise Unusable(str(error)) from None
    return compile_files([own, *(libraries() if "import" in text else ())], registry=registry)


def libraries() -> list[Source]:
    """The libraries that come along with the program."""
    return [read_source(path) for path in sorted(policies_folder().glob("lib/*.policy"))]


def policies_folder() -> Path:
    """Where the policies that come along lie: beside the grammar, in the wheel and in a checkout."""
    return grammar_folder().parent / "policies"


def _problem(one: Diagnostic, result: CompileResult) -> Json:
    line, column = result.source_of(one).line_column(one.span.start)
    return {
        "is_error": one.severity is Severity.ERROR,
        "code": one.code,
        "line": line,
        "column": column,
        "file": "" if one.file == FILE else Path(one.file).name,
        "message": one.message,
    }


def _tests(result: CompileResult, registry: PluginRegistry) -> Iterator[Json]:
    for policy in result.policies:
        if policy.source.file == FILE:
            for outcome in run_tests(TestedPolicy(policy, in_file_tests(policy), registry=registry)):
                failures = [{"message": one.message, "details": list(one.details)} for one in outcome.failures]
                line, _ = policy.source.line_column(outcome.span.start)
                yield {"policy": policy.name, "name": outcome.name, "line": line, "failures": failures}


# --- on the cluster --------------------------------------------------------------------------------------


def _played(result: CompileResult, before: str, text: str, registry: PluginRegistry, notes: list[str]) -> Json:
    """Where the pods are in the end. Raises `Unusable`, `ScenarioError`."""
    if not text.strip():
        notes.append("there is no cluster: write a scenario, or paste what kubectl prints, to see pods placed")
        return {}
    cluster = read(text, registry)
    notes += cluster.notes
    if not result.profiles:
        notes.append("there is no policy in the text: the pods are placed as kube-scheduler places them")
    after = with_default_profile(result.profiles)
    old = _before(before, after, registry, notes)
    memberships = Memberships(old or (), after)
    run = cluster.play(after, memberships)
    asked = [pod for pod in run.ledger.pods.values() if pod.attempts > 0 or pod.bound is None]  # somebody had to decide
    pods = sorted(asked, key=lambda pod: pod.bound is not None)
    return {
        "where": f"{cluster.where}, {clock(run.end)}",
        "bound": sum(pod.bound is not None for pod in pods),
        "waiting": sum(pod.state == "pending" for pod in pods),
        "pod_count": len(pods),
        "pods": [_pod(pod) for pod in pods[:SHOWN]],
        "node_count": len(run.ledger.nodes),
        "nodes": [_node(node) for node in islice(run.ledger.nodes.values(), SHOWN)],
        "resources": resources(run.ledger)[:4],
        "series": _series(run),
        "plan": None if old is None else _plan(cluster, old, after, memberships, run),
    }


def _pod(pod: PodRecord) -> Json:
    return {
        "pod": pod.name,
        "node": pod.node,
        "state": pod.state,
        "waited": pod.waited,
        "why": pod.told if pod.bound is None else "",
        "by": list(pod.refused_by) if pod.bound is None else [],
    }


def _node(node: NodeRecord) -> Json:
    """`fill`: what is used of each resource, in percent."""
    fill = {name: round(100 * node.used[name] / room) for name, room in node.room.items() if room > 0}
    return {"node": node.name, "pods": node.pods, "fill": fill, "is_gone": node.gone is not None}


def _series(run: Rerun) -> Json:
    """Columns over time: `at` in seconds from the start, pods, and shares of what there is in percent."""
    everything = run.ledger.samples
    step = -(-len(everything) // POINTS) or 1
    samples = [*everything[:-1:step], *everything[-1:]]
    shares = {name: [round(100 * one.share(name), 2) for one in samples] for name in ("cpu", "memory")}
    return {
        "end": round(run.end, 3),
        "at": [round(one.at, 3) for one in samples],
        "waiting": [one.pending for one in samples],
        "running": [one.running for one in samples],
        **shares,
    }


# --- against the text before -----------------------------------------------------------------------------


def _before(text: str, after: Sequence[Profile], registry: PluginRegistry, notes: list[str]) -> list[Profile] | None:
    """What served before; None where there is nothing to compare with."""
    if not text.strip():
        return None
    result = compiled(text, registry)
    if result.failed:
        notes.append("the text before has mistakes: nothing is compared with it")
        return None
    old = with_default_profile(result.profiles)
    try:
        replaced(old, after)
    except NotServed as error:
        notes.append(f"nothing is compared with the text before: {error}")
        return None
    return old


def _plan(
    cluster: Cluster, old: Sequence[Profile], after: Sequence[Profile], memberships: Memberships, run: Rerun
) -> Json:
    first = cluster.play(old, memberships)
    about = f"{len(first.ledger.pods):,} pods over {clock(first.end)} of {cluster.where}"
    plan = Plan(about, _named(old), _named(after), compared(first, run))
    return {"head": list(head(plan)), "tables": [[title, list(headers), list(map(list, rows))]
                                                 for title, headers, rows in tables(plan, 50)]}  # fmt: skip


def _named(profiles: Sequence[Profile]) -> str:
    """What the text serves, without what is there in every cluster."""
    nobody = default_profile().policy_hash
    return ", ".join(f"{one.name} {one.policy_hash[:12]}" for one in profiles if one.policy_hash != nobody) or "nothing"
