"""Draws the load of every node at the end of simulations, as SVG: a panel a run, a bar a node.

    python examples/load_over_nodes.py safe > examples/safe/load.svg
    python examples/load_over_nodes.py pigeon > examples/pigeon/load.svg

A bar is what pods ask for; before it, in grey, what the node used before they came, where its annotations say so. Below
stands what the colours mean.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from policyengine import Simulation
from policyengine.commands.policies import load_profiles

EXAMPLES = Path(__file__).resolve().parent
POLICIES = EXAMPLES.parent / "policies"
BAR, GAP, LEFT, PLOT, TOP, MARGIN = 16, 6, 80, 220, 44, 24
KINDS = {"used": "measured before", "large": "large pods", "small": "small pods"}
"""What a bar is made of, in its order, and what it is called."""
STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #6e7781; } .title { font-weight: 600; } .frame { fill: #8c959f33; }
.used { fill: #8c959f; } .small { fill: #1f77b4; } .large { fill: #d9730d; } .end { text-anchor: end; }
@media (prefers-color-scheme: dark) { text { fill: #b6bec8; } }"""


@dataclass(frozen=True)
class Bar:
    """One node: parts of its processors, from 0 to 1."""

    node: str
    used: float
    small: float
    large: float


def panel(scenario: Path, objective: str = "") -> list[Bar]:
    """Play the scenario, and look at its nodes at the end."""
    profiles = None
    if objective:
        profiles = load_profiles([POLICIES / "pigeon.policy"], {"objective": objective})
    simulation = Simulation(scenario, profiles)
    measured = {
        node.name: 1 - int(free) / (int(node.given["allocatable"]["cpu"]) * 1000)
        for node in simulation.scenario.nodes
        if (free := node.given.get("annotations", {}).get("mean-free-cpu"))
    }
    ledger = simulation.run().ledger
    bars = []
    for name, node in sorted(ledger.nodes.items()):
        asked = [pod.asks["cpu"] / node.room["cpu"] for pod in ledger.pods.values() if pod.node == name]
        small, large = (sum(one for one in asked if (one > 0.5) == is_large) for is_large in (False, True))
        bars.append(Bar(name, measured.get(name, 0.0), small, large))
    return bars


def svg(panels: dict[str, list[Bar]]) -> str:
    """The panels side by side."""
    rows = max(map(len, panels.values()))
    width, foot = len(panels) * (LEFT + PLOT + GAP) + MARGIN, TOP + rows * (BAR + GAP) + GAP
    height = foot + BAR + GAP
    title = "load of the nodes: " + ", ".join(panels)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">']
    parts.append(f"<style>{STYLE}</style>")
    for number, (name, bars) in enumerate(panels.items()):
        left = number * (LEFT + PLOT + GAP) + LEFT
        parts.append(f'<text class="title" x="{left}" y="24">{name}</text>')
        for row, bar in enumerate(bars):
            parts += _row(bar, left, TOP + row * (BAR + GAP))
    shown = [kind for kind in KINDS if any(getattr(bar, kind) for bars in panels.values() for bar in bars)]
    for number, kind in enumerate(shown):
        left = LEFT + number * (PLOT // 2 + MARGIN)
        parts.append(f'<rect class="{kind}" x="{left}" y="{foot}" width="{BAR // 2}" height="{BAR // 2}"/>')
        parts.append(f'<text x="{left + BAR}" y="{foot + BAR // 2}">{KINDS[kind]}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _row(bar: Bar, left: int, top: int) -> list[str]:
    parts = [
        f'<text class="end" x="{left - GAP}" y="{top + 12}">{bar.node}</text>',
        f'<rect class="frame" x="{left}" y="{top}" width="{PLOT}" height="{BAR}"/>',
    ]
    at = float(left)
    for kind in KINDS:
        if share := getattr(bar, kind):
            parts.append(f'<rect class="{kind}" x="{at:.1f}" y="{top}" width="{share * PLOT:.1f}" height="{BAR}"/>')
            at += share * PLOT
    return parts


def pictures(example: str) -> dict[str, list[Bar]]:
    """The panels of an example."""
    if example == "safe":
        return {f"safe-{name}": panel(EXAMPLES / "safe" / f"{name}.yaml") for name in ("overload", "balance")}
    objectives = ("LOAD_BALANCE", "A_BINPACK", "CONSOLIDATE")
    return {name: panel(EXAMPLES / "pigeon" / "scenario.yaml", name) for name in objectives}


if __name__ == "__main__":
    print(svg(pictures(sys.argv[1])), end="")
