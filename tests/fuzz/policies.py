"""Policies with members of every kind, written at random, and the same plainly: see `tests.fuzz.writer`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from unittest.mock import patch

import yaml

from policyengine.compiler.compile import CompileResult
from policyengine.framework.profile import Profile
from policyengine.language import ir
from policyengine.language.checking import policy_checks
from policyengine.language.checking.setting_checks import MOST_TIERS, POINTS
from policyengine.language.diagnostics import Diagnostic, Severity, Source
from policyengine.language.types import DOUBLE, INT, MEMORY, STRING, Kind, Type, optional_of
from policyengine.policy_compiler import checked, compile_files
from tests.fuzz.expression_writer import OWN, PLAIN, WRITTEN
from tests.fuzz.vocabulary import EVERY_POD, EVERYTHING, POD_ONLY, RUNNING, SCALARS, VICTIM, Named, Where
from tests.fuzz.writer import PARAMS, Writer

PLACED = ("reserve", "permit", "preBind", "postBind")
"""Points at which a node is chosen."""
LETS = replace(EVERYTHING, roots=EVERYTHING.roots - {"waiting"})
QUEUED = replace(POD_ONLY, roots=POD_ONLY.roots | {"waiting"})
"""What the order of the queue may read."""


@dataclass(eq=False)
class Member:
    """A member of a block: its text, with marks."""

    file: str
    """`p` the policy, `lib` the library, `team` the overlay; '' where only the plain policy has it."""
    text: str
    is_plain: bool
    """Whether the plain policy has it too."""


@dataclass
class Written:
    """A policy: its files, the values of its params from outside, and what it is plainly."""

    sources: list[Source]
    params: dict[str, object]
    result: CompileResult
    plain: ir.Policy

    @property
    def profile(self) -> Profile:
        return self.result.profiles[0]

    def __str__(self) -> str:
        files = "\n".join(f"--- {source.file}\n{source.text}" for source in self.sources)
        return f"{files}\n--- params {self.params}\n--- plainly\n{self.plain.source.text}"


class PolicyWriter(Writer):
    """Writes a policy of some rules; `depth` is that of their expressions."""

    def __init__(self, chance: Random, depth: int = 2, head: str = "base none") -> None:
        super().__init__(chance)
        self.depth = depth
        self.head = head
        self.params: dict[str, object] = {}
        self.tiers = 0
        self.kinds: dict[str, set[str]] = {}
        """The kinds of rules that have a name."""
        self.members: list[Member] = []
        self._file = "p"
        """Where members are written now."""
        self._around: str | None = None
        """The `when` of the overlay."""

    def add(self, text: str, is_plain: bool = True) -> None:
        self.members.append(Member(self._file, text, is_plain))

    def expr(self, type_: Type | str, where: Where) -> str:
        return self.text(type_, where, self.depth)

    def seldom(self, text: str) -> str:
        return text if self.chance.random() < 0.4 else ""

    def when(self, where: Where = EVERY_POD) -> str:
        """A `when`, perhaps; plainly with that of the overlay around it."""
        own = self.expr("bool", where) if self.chance.random() < 0.4 else ""
        plain = " && ".join(f"({one})" for one in (self._around, own) if one)
        return self.both(f" when {own}" if own else "", f" when {plain}" if plain else "")

    # --- names ---------------------------------------------------------------------------------------------

    def names(self) -> None:
        """Params, lets and functions, of a library and of the policy."""
        for file, prefix in (("lib", "s."), ("p", "")):
            self._file = file
            if file == "p" or self.chance.random() < 0.4:
                for _ in range(self.chance.choice((0, 1, 2))):
                    self.named.append(self.given_param(prefix))
                for make in (self.let, self.let, self.function, self.function):
                    if self.chance.random() < 0.6:
                        text, named = make(self.chance.choice((LETS, POD_ONLY)), prefix)
                        self.add(text, is_plain=False)
                        self.named.append(named)

    def given_param(self, prefix: str = "") -> Named:
        """A param, which now and then has another value from outside."""
        name, named = self.param(prefix)
        kind, value = str(named.type), named.body
        declared = f"param {name}: {kind} = "
        if self.chance.random() < 0.4:
            value = self.one(*PARAMS[kind])
            self.params[{"lib": "lib.", "team": "team."}.get(self._file, "") + name] = yaml.safe_load(value)
        values = f" values [{', '.join(PARAMS[kind])}]" if kind != "bool" and not kind.startswith("list") else ""
        self.add(declared + named.body + self.seldom(values), is_plain=False)
        self.members.append(Member("", declared + value, True))
        return named

    def weight(self, most: int = 1000) -> str:
        """A number, or a param."""
        if self._file != "p" or self.chance.random() < 0.6:
            return str(self.chance.choice((1, 2, most)))
        name, value = self.new("w"), self.chance.choice((3, 5))
        self.add(f"param {name}: int = 3 range [1, 9]", is_plain=False)
        self.members.append(Member("", f"param {name}: int = {value}", True))
        self.params |= {name: value} if value != 3 else {}
        return name

    # --- rules ---------------------------------------------------------------------------------------------

    def rule(self, kind: str) -> str:
        """A name for a rule: a new one, or one that rules of other kinds have."""
        taken = [name for name, kinds in self.kinds.items() if kind not in kinds]
        name = self.chance.choice(taken) if taken and self.chance.random() < 0.4 else self.new("r")
        self.kinds.setdefault(name, set()).add(kind)
        return name

    def template(self, where: Where) -> str:
        """A text in quotes with something filled in."""
        parts = [self.one("is ", "{{", "", "}} of ", "µ ")]
        for _ in range(self.chance.choice((1, 1, 2))):
            found = self.leaf(Type(Kind(self.one(*SCALARS))), where)
            shown = self.resolved(found, PLAIN)
            if found and not set(shown) & set("\"'{}\\"):
                parts += [f"{{{found}}}", self.one("", ", ")]
        return f'"{"".join(parts)}"'

    def filter(self) -> None:
        requires = []
        for _ in range(self.chance.choice((1, 1, 2, 3))):
            where = self.chance.choice((EVERYTHING, EVERYTHING, EVERYTHING, EVERY_POD))
            says = self.seldom(f" else {self.template(EVERYTHING)}")
            says += f" on error {self.expr('bool', where)}" if self.chance.random() < 0.25 else ""
            requires.append(f"require {self.expr('bool', where)}{says}")
        self.add(f'filter "{self.rule("filter")}"{self.when()} {{ {self.one(" ", ", ").join(requires)} }}')

    def score(self) -> None:
        mode = self.one(
            "", "", *(f" normalize {how}{turned}" for how in ("max", "minmax") for turned in ("", " reverse"))
        )
        of = self.chance.choice((INT, DOUBLE, optional_of(INT), optional_of(DOUBLE)))
        on_error = f" on error {self.points(of, bool(mode))}" if self.chance.random() < 0.3 else ""
        value = self.points(of, bool(mode))
        how = "tier" if self.tiers < MOST_TIERS and self.chance.random() < 0.2 else f"weight {self.weight()}"
        self.tiers += how == "tier"
        self.add(f'score "{self.rule("score")}" {how}{self.when()}{mode} = {value}{on_error}')

    def points(self, of: Type, is_free: bool) -> str:
        """The value of a score; within bounds, unless it is free of them."""
        if is_free:
            return self.expr(of, EVERYTHING)
        if of.kind is Kind.OPTIONAL:
            name = self.new("v")
            return f"{self.expr(of, EVERYTHING)}.optMap({name}, clamp(double({name}), -20.0, 130.0))"
        if of.kind is Kind.INT:
            return f"clamp({self.expr(INT, EVERYTHING)}, {self.one('0, 100', '-5, 40', '99, 1000')})"
        amounts = [self.expr("memory", EVERYTHING) for _ in range(2)]
        return f"{self.one('100', '37.5')} * ratio({', '.join(amounts)})"

    def queue(self) -> None:
        order = f"order by {', '.join(self.order_key(QUEUED) for _ in range(self.chance.choice((1, 2))))} "
        fair = f"fair by {self.expr('string', POD_ONLY)}"
        fair += self.one("", ' weight {"prod": 3, "a": 0.5, "": 2} ', " ")
        self.add(f"queue {{ {self.one('', order)}{self.one('', fair)} backoff 1s .. 10s flush 5min }}")

    def order_key(self, where: Where) -> str:
        kind = Type(Kind(self.one(*SCALARS)))
        of = self.chance.choice((kind, kind, optional_of(kind)))
        return f"{self.expr(of, where)}{self.one('', ' asc', ' desc')}{self.one('', ' missing first', ' missing last')}"

    def gang(self) -> None:
        fields = [f"key: {self.expr('string', POD_ONLY)}", f"min: {self.expr('int', POD_ONLY)}"]
        fields += [f"timeout: {self.expr('duration', POD_ONLY)}"]
        fields += [f"waits: {self.expr('duration', POD_ONLY)}"] * self.chance.randrange(2)
        self.add(f'gang "{self.rule("gang")}"{self.when(POD_ONLY)} {{ {self.one(" ", ", ").join(fields)} }}')

    def quota(self) -> None:
        amounts = self.one(
            "guarantee: {cpu: 2}",
            'limit: {memory: 4Gi, "nvidia.com/gpu": 4}',
            "guarantee: {storage: 1Gi}, limit: {cpu: 3000m}",
            f"limit: {{cpu: {self.expr('cpu', RUNNING)}}}",
            f"guarantee: {{memory: {self.expr(optional_of(MEMORY), RUNNING)}}}, limit: {{memory: 1Gi}}",
        )
        borrow = self.seldom(f" borrow: {self.expr('bool', EVERY_POD)}")
        own = self.expr("bool", RUNNING)
        when = self.both(own, f"({self._around}) && ({own})" if self._around else own)
        by = self.seldom(f" by {self.expr(self.chance.choice((STRING, optional_of(STRING))), RUNNING)}")
        self.add(f'quota "{self.rule("quota")}"{by} when {when} {{ {amounts}{borrow} }}')

    def permit(self) -> None:
        """The chosen node may be read."""
        hold = self.one("delay", "until")
        fields = [f"{hold}: {self.expr('duration' if hold == 'delay' else 'bool', EVERYTHING)}"]
        fields += [f"timeout: {self.expr('duration', EVERYTHING)}"] * self.chance.randrange(2)
        self.add(f'permit "{self.rule("permit")}"{self.when(EVERYTHING)} {{ {" ".join(fields)} }}')

    def preempt(self) -> None:
        order = f"order by {', '.join(self.order_key(VICTIM) for _ in range(self.chance.choice((1, 2))))} "
        most = f"maxVictims: {self.weight(1)}"
        victims = f"victims: {self.expr('bool', VICTIM)} "
        self.add(f"preempt{self.when()} {{ {victims}{self.one('', order)}{self.one('', most)} }}")

    def log(self) -> None:
        point = self.one(*POINTS)
        where = EVERYTHING if point in PLACED else EVERY_POD
        self.add(f"on {point}{self.when(where)} log {self.template(where)}")

    def bind(self) -> None:
        pairs = [f'"example.com/{name}": {self.template(EVERYTHING)}' for name in ("zone", "why")]
        self.add(f"bind {{ annotations: {{{', '.join(pairs[: self.chance.choice((1, 2))])}}} }}")

    def overlay(self) -> None:
        """An overlay of a few rules."""
        self._around = self.seldom(self.expr("bool", RUNNING))
        self._file = "team"
        for make in (self.filter, self.score, self.quota):
            if self.chance.random() < 0.6:
                make()
        self._file = "p"

    # --- the whole -----------------------------------------------------------------------------------------

    def rules(self, count: int) -> None:
        """Names, and so many rules of all kinds."""
        self.names()
        once = [self.queue, self.preempt, self.bind]
        others = [self.filter] * 6 + [self.score] * 6 + [self.gang, self.quota, self.permit, self.log]
        for _ in range(count):
            if once and self.chance.random() < 0.25:
                once.pop(self.chance.randrange(len(once)))()
            else:
                self.chance.choice(others)()
        if self.chance.random() < 0.3:
            self.overlay()

    def written(self) -> Written | None:
        """What was written, without the members that the checker refuses; None where that will not be had."""
        for _ in range(12):
            try:
                sources, places = self._files()
                plain = Source("plain", self._plainly())
            except OverflowError:
                return None
            result = compile_files(sources, self.params)
            wrong = [one for one in result.diagnostics if one.severity is Severity.ERROR]
            if not wrong:
                with patch.object(policy_checks, "rewrite", lambda policy: policy):
                    policies, findings = checked(plain)
                errors = [one for one in findings if one.severity is Severity.ERROR]
                assert {one.code for one in errors} <= PLAINLY, f"{errors}\n{sources}\n{plain}"
                return None if errors else Written(sources, self.params, result, policies[0])
            self._drop(wrong, places)
        return None

    def files(self) -> list[Source]:
        """What was written, refused or not."""
        return self._files()[0]

    def _files(self) -> tuple[list[Source], list[tuple[str, int, int, Member]]]:
        """The files, and where each member stands: (file, from, to, the member)."""
        imports = 'import "lib" as s\n' if any(member.file == "lib" for member in self.members) else ""
        around = f" when {self._around}" if self._around else ""
        heads = {"lib": 'library "lib" {', "p": f'{imports}policy "p" {{ {self.head}'}
        heads["team"] = f'{imports}overlay "team" on "p"{around} {{'
        sources, places = [], []
        for file, head in heads.items():
            members = [member for member in self.members if member.file == file]
            how = OWN if file == "lib" else WRITTEN
            text = self.resolved(head, how) + "\n"
            for member in members:
                inside = self.resolved(member.text, how)
                places.append((file, len(text), len(text) + len(inside), member))
                text += inside + "\n"
            sources += [Source(file, text + "}")] if members or file == "p" else []
        return sources, places

    def _plainly(self) -> str:
        lines = [self.resolved(member.text, PLAIN) for member in self.members if member.is_plain]
        return "\n".join((f'policy "p" {{ {self.head}', *lines, "}"))

    def _drop(self, wrong: Sequence[Diagnostic], places: Sequence[tuple[str, int, int, Member]]) -> None:
        """Drop the members that are refused."""
        spots = [(one.file, one.span.start) for one in wrong]
        bad = [one for file, start, end, one in places if any(f == file and start <= spot < end for f, spot in spots)]
        if not bad:
            assert self._around is not None, wrong
            self._around, self.members = None, [one for one in self.members if one.file != "team"]
        self.members = [one for one in self.members if one not in bad]


PLAINLY = frozenset({"PE1006", "PE1009", "PE1012", "PE2009", "PE2019"})
"""What may be wrong plainly and not as it is written: constants out of bounds, and limits."""
