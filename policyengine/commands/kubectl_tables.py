"""The pages of running schedulers as kubectl would print them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import click
from rich.console import Console
from rich.text import Text

from policyengine.commands.console import plain_table, standard_output
from policyengine.control_characters import escaped, escaped_values

WIDE: Final = 4000
"""Columns where the output is no terminal: no line is folded."""
_SHOWN: Final = 12
"""Characters of a hash."""
_CPU: Final = "cpu"

Pages = Sequence[Mapping[str, Any]]


def show(page: str, pages: Pages, output: str, namespace: str | None = None) -> None:
    """Print `status`, `queue` (of a namespace where one is given), `quota` or `rollout` of schedulers."""
    if namespace is not None:
        pages = [
            {**one, "pods": {key: pod for key, pod in one["pods"].items() if key.startswith(f"{namespace}/")}}
            for one in pages
        ]
    if output == "json":
        click.echo(json.dumps(pages, indent=2))
    elif page == "queue":
        _show_queue(pages, namespace)
    else:
        {"status": _show_status, "quota": _show_quota, "rollout": _show_rollout}[page](pages)


def _show_status(pages: Pages) -> None:
    """What serves, and what became of each object that carries policies."""
    serving = [
        (one["scheduler"], one["policy"], one["hash"][:_SHOWN], one["from"], one["waiting"])
        for page in pages
        for one in page["serving"]
    ]
    objects = [
        (
            one["kind"],
            f"{one['namespace']}/{one['name']}",
            one["how"],
            ",".join(one["schedulers"]),
            (f"line {one['line']}, column {one['column']}: " if one["line"] else "") + one["message"],
        )
        for page in pages
        for one in page["objects"]
    ]
    console = standard_output(WIDE)
    for page in pages:
        console.print(
            Text.assemble("leader ", (escaped(page["servedBy"]["identity"]), "bold"), f", lease {page['lease']}")
        )
    console.print()
    _print(console, ("SCHEDULER", "POLICY", "HASH", "FROM", "WAITING"), serving, "no policy serves")
    console.print()
    _print(console, ("KIND", "NAME", "STATE", "SCHEDULERS", "MESSAGE"), objects, "no ConfigMap and no SchedulingPolicy")


def _show_queue(pages: Pages, namespace: str | None) -> None:
    """The pods that wait, of one namespace or of all, in the order of their turns."""
    rows = [
        (
            key,
            pod["scheduler"],
            pod["place"],
            "" if pod["position"] is None else pod["position"] + 1,
            "" if pod["waits"] is None else age(pod["waits"]),
            pod["attempts"],
            pod["message"],
        )
        for key, pod in once(pages).items()
    ]
    console = standard_output(WIDE)
    _print(console, ("POD", "SCHEDULER", "PLACE", "POSITION", "WAITS", "ATTEMPTS", "MESSAGE"), rows, "no pod waits")
    left = sum(page["count"] - len(page["pods"]) for page in pages)
    if left > 0 and namespace is None:
        console.print(f"and {left} more")


def once(pages: Pages) -> dict[str, Mapping[str, Any]]:
    """Each pod by the scheduler that serves it, where one does."""
    found: dict[str, Mapping[str, Any]] = {}
    for page in pages:
        for key, pod in page["pods"].items():
            if key not in found or pod["scheduler"] in page["schedulers"]:
                found[key] = pod
    return found


def _show_quota(pages: Pages) -> None:
    """What each quota guarantees, what is used and borrowed; and the shares of tenants."""
    rows = [
        (
            one["scheduler"],
            one["quota"] if one["key"] is None else f"{one['quota']} of `{one['key']}`",
            name,
            *(_amount(name, one[what].get(name, absent)) for what, absent in _AMOUNTS.items()),
        )
        for page in pages
        for one in page["quotas"]
        for name in sorted({*one["guarantee"], *one["limit"]})
    ]
    tenants = [
        (one["scheduler"], one["tenant"] or "(none)", f"{one['share']:.1%}")
        for page in pages
        for one in page["tenants"]
    ]
    console = standard_output(WIDE)
    _print(console, ("SCHEDULER", "QUOTA", "RESOURCE", *map(str.upper, _AMOUNTS)), rows, "no policy has a quota")
    if tenants:
        console.print()
        _print(console, ("SCHEDULER", "TENANT", "SHARE"), tenants, "")


_AMOUNTS: Final = {"used": 0, "guarantee": None, "borrowed": None, "limit": None}
"""Columns, and what an amount is that the page does not tell."""


def _show_rollout(pages: Pages) -> None:
    """The candidates: how far they agree with the policy that serves, and what they may cost."""
    rows = [
        (
            one["scheduler"],
            one["policy"],
            one["hash"][:_SHOWN],
            one["settings"]["mode"],
            one["found"]["compared"],
            "" if one["found"]["agreement"] is None else f"{one['found']['agreement']:g}%",
            one["found"]["decided"],
            one["found"]["refused"],
            _budget(one["settings"]["budget"]),
            one["suspended"] or "tried",
        )
        for page in pages
        for one in page["rollouts"]
    ]
    headers = ("SCHEDULER", "POLICY", "HASH", "MODE", "COMPARED", "AGREEMENT", "DECIDED", "REFUSED", "BUDGET", "STATE")
    _print(standard_output(WIDE), headers, rows, "no policy is tried")


def _budget(budget: Mapping[str, Any]) -> str:
    shares = [f"{name} {budget[name]:g}%" for name in ("unschedulable", "divergence") if budget[name] is not None]
    return ", ".join([*shares, *([f"cycleTime {budget['cycleTime'] * 1e3:g}ms"] if budget["cycleTime"] else [])])


def _amount(name: str, amount: int | None) -> str:
    """As Kubernetes writes it: millicores, and whole units of the largest power of two that fits."""
    if amount is None:
        return ""
    if name == _CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    for power, unit in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if amount and amount % (1 << power) == 0:
            return f"{amount >> power}{unit}"
    return str(amount)


def age(seconds: int) -> str:
    """`45s`, `12m`, `3h20m`, `5d`, as kubectl does."""
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours = seconds // 60, seconds // 3600
    if minutes < 180:
        return f"{minutes}m"
    return f"{hours}h{minutes % 60:02}m" if hours < 48 else f"{hours // 24}d"


def _print(console: Console, headers: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """A table, or a line that says why there is none."""
    table = plain_table(*headers, gap=3)
    for row in rows:
        table.add_row(*(Text(str(escaped_values(str(cell)))) for cell in row))
    console.print(table if table.row_count else empty)
