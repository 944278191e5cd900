"""A policy: its text, and beside each rule what it costs, how often it decided, and what its tests see of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from typing import Any, Final

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile
from policyengine.framework.quota import NO_QUOTAS
from policyengine.framework.scoring import Choice
from policyengine.language.diagnostics import Source
from policyengine.language.parse import parse_file
from policyengine.language.parsing import grammar
from policyengine.language.parsing.tokens import tokens_of
from policyengine.language.syntax.member_nodes import Block, Rule
from policyengine.scheduler.state import SchedulerState
from policyengine.server import debug
from policyengine.server.pages.overview import age
from policyengine.server.pages.rendering import seconds
from policyengine.server.pages.source import Asked, Moment, NotShown

HOUR: Final = 3600.0
LINES: Final = 3000
"""Lines of a file that are shown."""
LARGEST: Final = 200_000
"""Characters of a file that is shown with colours and rules."""


@dataclass(slots=True)
class RuleUse:
    """What one rule did in the last hour, as far as that is remembered."""

    placements: int = 0
    """Pods that were placed while it kept nodes from them."""
    kept_off: int = 0
    """Nodes that it refused then, in all."""
    tipped: int = 0
    """Pods for which the next best node would have been as good or better without its score."""
    scored: int = 0
    refused: int = 0
    """Pods that wait, and were refused by it last."""
    asked: int = 0
    worked: int = 0
    """Since the policy serves: how often it was asked about a pod, and how often that meant work."""
    cost: float | None = None
    """Seconds for all nodes, from nothing."""

    def words(self, nodes: int) -> str:
        """What is known of it, in a sentence."""
        said = [
            (self.cost is not None, f"{seconds(self.cost)} for {nodes:,} nodes"),
            (self.placements, f"kept {self.kept_off:,} nodes from {self.placements:,} pods"),
            (self.scored, f"scored {self.scored:,} pods, and decided about {self.tipped:,} of them"),
            (self.refused, f"{self.refused:,} pods wait for it"),
            (self.asked, f"asked {self.asked:,} times in all, {self.worked:,} of them work"),
        ]
        return "; ".join(words for known, words in said if known)


def all_content(moment: Moment, asked: Asked) -> dict[str, Any]:
    """What the list of policies shows."""
    ages = {one.scheduler_name: age(moment, one.scheduler_name) for one in moment.state.profiles}
    rollouts = debug.rollout(moment.state)["rollouts"]
    return {"policies": debug.status(moment.state, moment.standings), "ages": ages, "rollouts": rollouts}


def content(moment: Moment, asked: Asked) -> dict[str, Any]:
    """What the page of one policy shows. Raises `NotShown`."""
    state, name = moment.state, asked.path["scheduler"]
    profile = next((one for one in state.profiles if one.scheduler_name == name), None)
    if profile is None:
        raise NotShown(404, f"no policy here serves `{name}`")
    serving = debug.status(state, moment.standings)["serving"]
    uses = uses_of(state, profile, moment.now)
    kept = [placed.at for _, placed in state.recent_placements()]
    since = max(moment.now - HOUR, min(kept, default=moment.now))
    for rule, cost in costs(state, profile, asked.monotonic):
        uses.setdefault(rule, RuleUse()).cost = cost
    shown = [_file(file, text, uses) for file, text in profile.loaded_from.files.items()]
    in_text = {rule for one in shown for rule in one["rules"]}
    return {
        "profile": profile,
        "age": age(moment, name),
        "files": shown,
        "params": dict(profile.loaded_from.params),
        "uses": uses,
        "others": {rule: use for rule, use in sorted(uses.items()) if rule not in in_text},
        "since": since,
        "nodes": state.view.nodes.n,
        "covered": asked.covered,
        "has_tests": any("test " in text for text in profile.loaded_from.files.values()),
        "versions": list(reversed(state.versions(name))),
        "served": next(one for one in serving if one["scheduler"] == name),
    }


def uses_of(state: SchedulerState, profile: Profile, now: float) -> dict[str, RuleUse]:
    """By rule or plugin: how often it decided in the last hour."""
    uses = {plugin.name: RuleUse() for plugin in profile.plugins()}
    recent = takewhile(lambda one: now - one[1].at <= HOUR, state.recent_placements())
    for _, placed in recent:
        if placed.policy_hash != profile.policy_hash:
            continue
        for rule, count in placed.choice.refused:
            if count and rule in uses:
                uses[rule].placements += 1
                uses[rule].kept_off += count
        for rule, tipped in _scores(placed.choice):
            if rule in uses:
                uses[rule].scored += 1
                uses[rule].tipped += tipped
    for queued in (one for part in state.queued(profile.scheduler_name) for one in part):
        for rule in queued.unschedulable_plugins & uses.keys():
            uses[rule].refused += 1
    for used, rule, _, asked, worked in state.usage():
        if used is profile and rule in uses:
            uses[rule].asked += asked
            uses[rule].worked += worked
    return uses


def _scores(choice: Choice) -> Iterator[tuple[str, bool]]:
    """(rule, whether the next best node would have been as good or better without it) of those that scored."""
    weighted = list(choice.weighted().values())
    if len(weighted) < 2:
        return
    first, second = weighted[0], weighted[1]
    lead = sum(first.values()) - sum(second.values())
    for rule, score in first.items():
        yield rule, 0 < score - second[rule] >= lead


def costs(state: SchedulerState, profile: Profile, monotonic: Callable[[], float]) -> Iterator[tuple[str, float]]:
    """(rule, seconds) of each filter and score, asked about one pod and all nodes, with nothing known from before."""
    pod = _example(state, profile)
    if pod is None or not state.view.nodes.n:
        return
    snapshot = state.view.snapshot()
    everything = Evaluator(replace(profile, filters=(), quotas=NO_QUOTAS)).filter(pod, snapshot)
    for plugin in profile.filters:
        alone = Evaluator(replace(profile, filters=(plugin,), scores=(), pre_enqueue=()))
        began = monotonic()
        alone.filters_asked(pod, snapshot)
        yield plugin.name, monotonic() - began
    for scorer in profile.scores:
        alone = Evaluator(replace(profile, filters=(), scores=(scorer,), pre_enqueue=()))
        began = monotonic()
        alone.score(pod, snapshot, everything)
        yield scorer[0].name, monotonic() - began


def _example(state: SchedulerState, profile: Profile) -> PodInfo | None:
    """A pod of the policy's: one that waits, where there is one."""
    for part in state.queued(profile.scheduler_name):
        if part:
            return part[0].pod
    return next((pod for pod in state.view.pods.values() if pod.scheduler_name == profile.scheduler_name), None)


def _file(name: str, text: str, uses: Mapping[str, RuleUse]) -> dict[str, Any]:
    """`{name, lines, rules, left_out}`; a line is `{number, pieces, rule}`."""
    source = Source(name, text)
    plain = len(text) > LARGEST
    rules = {} if plain else dict(_rules(source))
    lines = text[:LARGEST].split("\n") if plain else highlighted(source)
    shown = [
        {"number": number, "pieces": [("", line)] if isinstance(line, str) else line, "rule": rules.get(number)}
        for number, line in enumerate(lines[:LINES], 1)
    ]
    left_out = text.count("\n") + 1 - len(shown)
    return {"name": name, "lines": shown, "rules": set(rules.values()), "left_out": left_out, "is_plain": plain}


def _rules(source: Source) -> Iterator[tuple[int, str]]:
    """(line on which it begins, name) of every rule."""
    file, _ = parse_file(source)
    blocks: tuple[Block, ...] = (*file.libraries, *file.policies, *file.overlays)
    for block in blocks:
        for member in block.members:
            if isinstance(member, Rule):
                yield source.line_column(member.span.start)[0], member.name.text


_CLASSES = {
    "COMMENT": "comment",
    **dict.fromkeys(("STRING", "BYTES"), "string"),
    **dict.fromkeys(("INT", "UINT", "FLOAT", "QUANTITY", "DURATION"), "number"),
}

Piece = tuple[str, str]
"""Part of a line: keyword, string, number, comment or nothing, and the text."""


def highlighted(source: Source) -> list[list[Piece]]:
    """The lines of a text. What the tokens do not cover is plain."""
    cut = tokens_of(source)
    lines: list[list[Piece]] = [[]]
    at = 0
    for token in sorted([*cut.tokens, *cut.comments], key=lambda one: one.start):
        if token.start >= at:
            _put(lines, "", source.text[at : token.start])
            _put(lines, _kind(token.kind), source.text[token.start : token.end])
            at = token.end
    _put(lines, "", source.text[at:])
    return lines


def _put(lines: list[list[Piece]], kind: str, text: str) -> None:
    for number, line in enumerate(text.split("\n")):
        if number:
            lines.append([])
        if line:
            lines[-1].append((kind, line))


def _kind(terminal: str) -> str:
    return _CLASSES.get(terminal, "keyword" if terminal in _words() else "")


@cache
def _words() -> frozenset[str]:
    return frozenset(grammar.word_terminals().values())
