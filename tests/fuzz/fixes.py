"""`lint --fix` on generated texts: it changes no decision and loses no comment. `make fuzz` runs many.

    python -m tests.fuzz.seeds fixes [TEXTS] [SEED]

A policy is written with everything that has a fix, with comments between any two words, and now and then with mistakes
of the pen. What `--fix` makes of it says the same about a small cluster, unless it still has errors, and has every
comment in its order; only what documents a removed member goes with it.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.commands.linting.fix import fix_all
from policyengine.diagnosis.explain import explain
from policyengine.language.diagnostics import Severity, Source
from policyengine.language.parse import parse_file
from policyengine.language.parsing.tokens import tokenise
from policyengine.policy_compiler import compile_files
from policyengine.scheduler.messages import NodeObserved, PodObserved
from policyengine.trials.trial import Trial

FORMS: dict[str, tuple[str, ...]] = {
    "pod": (
        *("!!({pod})", "!({pod} == {pod})", "!({word} != {word})", "({pod}) == true", "false != ({pod})", "flag"),
        *("({pod}) != true", "true == flag", "({pod}) ? true : false", "({pod} ? false : true)", "is({int})"),
        *("{int} > {n}", "({pod} && {pod})", "({pod} || {pod})", "{int} in [{n}, {n}, {n},]", "!!flag == true"),
        *("{word} in [{w}, {w}, {w}]", "{word}.matches({w})", "high", "!high", "!(!flag)", "pod.requests.memory < {m}"),
    ),
    "node": (
        *("{pod}", "node.free.memory >= {m}", "!!node.ready", "(node.zone == {w}) == true", "!(node.zone == {w})"),
        *("{label} == {w}", "!!({node})", "({node} || {node})", "node.podCount < {n}", "spread"),
        *("(10 / node.podCount > {n} ? true : false)", "node.pods.all(q, !!(q.priority < {n}))"),
        "{m} <= node.allocatable.memory",
    ),
    "int": ("pod.priority", "{n}", "(pod.priority + {n})", "level", "clamp(pod.priority, 0, {n})"),
    "word": ("pod.namespace", 'pod.labels[?"app"].orValue({w})', "{w}", "pod.name"),
    "label": ('node.labels[?"{key}"].orValue({w})', "node.labels[?'x'].orValue({w})"),
    "key": ("beta.kubernetes.io/arch", "kubernetes.io/arch", "failure-domain.beta.kubernetes.io/zone"),
    "n": ("0", "1", "3", "5"),
    "m": ("1073741824", "5000000", "1Gi", "1048576", "7"),
    "w": ('"a"', "'a'", '"b"', 'r"x y"', '"""c"""', '"^d$"'),
    "amount": ("clamp(double({int}), 0.0, 9.0)", "clamp(1.0 / double({int}), 0.0, 9.0)", "({node} ? 1.0 : 3.0)"),
    "failing": ("", " on error {const}"),
    "const": ("true", "false", "(false)"),
    "plugin": ("ImageLocality", "TaintToleration", "NodeResourcesFit", "NodeAffinity"),
    "when": ("", "", " when {pod}"),
    "member": (
        *("let {new} = {int}", "let {new} = {node}", "function {new}(a: int): bool = a > {n}", "let {new} = {m}"),
        *("let {new} = level + {last}", "disable {plugin}", "use {plugin}", "use {plugin} weight 1"),
        "param {new}: int = 3",
        *('filter "{new}"{when} {{ require {node}{failing} require {node} else "no {pod.name}"{failing} }}',) * 3,
        *('filter "{new}" {{ require {node} else "{pod.priority == 3}",require {pod} }}',) * 2,
        *('score "{new}" weight 2{when} normalize max = {amount} on error 1.0', 'score "{new}" weight 3 = {amount}'),
        'permit "{new}" when {pod} {{ delay: 2s }}',
        'gang "{new}" when {pod} {{ key: pod.namespace min: 2 timeout: 60s }}',
        'quota "{new}" when pod.priority > {n} {{ limit: {{cpu: 2}} }}',
        'on reserve when {node} log "{{pod.name}} {{node.ready == true}}"',
    ),
    "overlay": ('overlay "o" on "p"{when} {{ filter "{new}" {{ require {last} > {n} || {node} }} }}',),
}
"""What is drawn -> its forms. `new` is a name of its own, `last` an earlier let."""
MISTAKES = (("==", "="), ("==", "==="), (">=", "=>"), ("&&", "and"), ("||", "or"), ("!", "not "), ("&&", "&"))
"""What slips of the pen make of a word; of a string, one in typographic quotes."""


class Writer:
    """Writes one text."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._comments = 0
        self._names = 0
        self._lets = ["level"]

    def filled(self, form: str, depth: int) -> str:
        return re.sub(r"\{(\{|\w+\})|\}\}", lambda found: self._part(found[0], depth), form)

    def _part(self, part: str, depth: int) -> str:
        if part in ("{{", "}}"):
            return part[0]
        kind = part[1:-1]
        if kind == "new":
            self._names += 1
            return f"n{self._names}"
        if kind == "last":
            return self._chance.choice(self._lets)
        forms = FORMS[kind]
        if depth <= 0 and kind in ("pod", "node", "int", "amount"):
            forms = tuple(form for form in forms if form.count("{") <= 1 and f"{{{kind}}}" not in form)
        return self.filled(self._chance.choice(forms), depth - 1)

    def member(self) -> str:
        written = self.filled("{member}", 4)
        if found := re.match(r"let (n\d+) = level \+", written):
            self._lets.append(found[1])
        return written

    def words(self) -> list[str]:
        """The blocks and members, and the signs that begin and end them."""
        members = [self.member() for _ in range(self._chance.randint(2, 7))]
        imports = ['import "l"'] if self._chance.random() < 0.5 else []
        own = ['policy "p" {', 'scheduler "p"', self._chance.choice(("base none", "base filters", "base kubernetes"))]
        own += ["let flag = pod.priority != 3", "let high = !!flag", "let level = pod.priority"]
        own += ["let spread = node.podCount < 4", *(["let one = l.one"] if imports else [])]
        own += ["function is(a: int): bool = a > 1", *members, "}"]
        library = ['library "l" { let one = 1 }']
        overlay = [self.filled("{overlay}", 3)] if self._chance.random() < 0.4 else []
        return [*imports, *library, *own, *overlay]

    # --- layout -----------------------------------------------------------------------------------------

    def comment(self, of: str = "") -> str:
        self._comments += 1
        if of:
            return f"/// c{self._comments} of {of}\n"
        allows = "lint: allow PE3009 because " if self._chance.random() < 0.1 else ""
        return f"// {allows}c{self._comments}\n"

    def text(self, mistakes: bool) -> tuple[str, str]:
        """A text, and the same with mistakes."""
        good, bad = list[str](), list[str]()
        for member in self.words():
            lead = self._chance.choice(("\n", "\n", "\n\n", " ")) + self._maybe(0.3, self.comment)
            lead += self._maybe(0.3, lambda of=member: f"\n{self.comment(of.split('=')[0].strip())}")
            words = [member[one.start : one.end] for one in tokenise(member, "").tokens[:-1]]
            gaps = [self._gap(before, behind) for before, behind in pairwise(words)]
            tail = self._maybe(0.3, lambda: f" {self.comment()}")
            good.append(lead + _joined(words, gaps) + tail)
            wrong = lead + _joined(*self._wronged(words, gaps)) + self._maybe(0.2, lambda: ";") + tail
            bad.append(wrong if mistakes and self._chance.random() < 0.5 else good[-1])
        return "".join(good).strip() + "\n", "".join(bad).strip() + "\n"

    def _maybe(self, chance: float, write: Callable[[], str]) -> str:
        return write() if self._chance.random() < chance else ""

    def _gap(self, before: str, behind: str) -> str:
        chance = self._chance.random()
        close = tokenise(before + behind, "")
        if chance < 0.25 and [one.text for one in close.tokens[:-1]] == [before, behind]:
            return ""
        return f" {self.comment()}  " if chance > 0.95 else "\n    " if chance > 0.92 else " "

    def _wronged(self, words: Sequence[str], gaps: Sequence[str]) -> tuple[list[str], list[str]]:
        """One of the words changed, where there is one that may be."""
        changed = list(words)
        places = [(at, wrong) for at, word in enumerate(words) for right, wrong in MISTAKES if word == right]
        places += [(at, f"“{word[1:-1]}”") for at, word in enumerate(words) if re.fullmatch('"[a-z ]+"', word)]
        if places:
            at, changed[at] = self._chance.choice(places)
        apart = [before[-1].isalnum() and behind[0].isalnum() for before, behind in pairwise(changed)]
        return changed, [gap or " " * glued for gap, glued in zip(gaps, apart, strict=True)]


def _joined(words: Sequence[str], gaps: Sequence[str]) -> str:
    return "".join(part for pair in zip(words, [*gaps, ""], strict=True) for part in pair)


# --- what a text says ------------------------------------------------------------------------------------


def _node(number: int) -> dict[str, Any]:
    labels = {"kubernetes.io/arch": "a", "x": "b"} if number else {"beta.kubernetes.io/arch": "a"}
    zone = {"topology.kubernetes.io/zone": "a"} if number < 2 else {}
    status = {"allocatable": {"cpu": "4", "memory": ("8Gi", "1Gi", "5M")[number], "pods": "4"}}
    ready = [{"type": "Ready", "status": "False" if number == 1 else "True"}]
    return {"metadata": {"name": f"n{number}", "labels": {**labels, **zone}}, "status": {**status, "conditions": ready}}


def _pod(number: int) -> dict[str, Any]:
    name, labels = ("a", "b", "x y", "c", "d", "e")[number], {"app": "a"} if number % 2 else {}
    requests = {"cpu": "1", "memory": ("7", "1Gi", "5M")[number % 3]}
    spec = {
        "schedulerName": "p",
        "priority": number,
        "containers": [{"name": "c", "resources": {"requests": requests}}],
    }
    metadata = {"name": name, "namespace": "ab"[number // 3], "uid": name, "labels": labels}
    return {"metadata": metadata, "spec": spec}


CLUSTER = {"nodes": [_node(at) for at in range(3)], "pods": [], "pending": [_pod(at) for at in range(6)]}


def decisions(text: str) -> Any:
    """What a policy does with the cluster; its errors, where it has some."""
    found = compile_files([Source("p.policy", text)])
    if found.failed:
        return [one.message for one in found.diagnostics if one.severity is Severity.ERROR]
    (profile,) = found.profiles
    said = explain(CLUSTER, profile)
    for one in said:
        one["rejected"] = {node: refusal["plugin"] for node, refusal in one["rejected"].items()}
        one.pop("preFilter", None)
    trial = Trial([profile], 0.0, limit=5000)
    trial.see(*(NodeObserved(decode(Node, node)) for node in CLUSTER["nodes"]))
    trial.see(*(PodObserved(decode(Pod, pod)) for pod in CLUSTER["pending"]))
    trial.advance(5.0)
    bound = [(at, bind.uid, bind.node) for at, bind in trial.binds]
    order = list(dict.fromkeys(trial.popped))  # a rule that reads less may wake its pods less often
    return [said, bound, order, [(at, log.message) for at, log in trial.logged]]


def _docs(text: str) -> dict[str, str]:
    """Member -> its documentation."""
    file, _ = parse_file(Source("p.policy", text))
    blocks = (*file.libraries, *file.policies, *file.overlays)
    members = [*file.imports, *(member for block in blocks for member in (block, *block.members))]
    return {one.doc: type(one).__name__ for one in members if one.doc}


def tried(seed: int) -> tuple[list[str], dict[str, int]]:
    """What `--fix` does wrong to the text of a seed; nothing where that has no meaning."""
    chance = random.Random(seed)
    good, text = Writer(chance).text(mistakes=chance.random() < 0.5)
    before = decisions(good)
    if before and isinstance(before[0], str):
        return [], {"texts": 1}  # a name twice, or values that have no operator
    with tempfile.TemporaryDirectory(prefix="policyengine-fuzz-") as folder:
        place = Path(folder) / "p.policy"
        place.write_text(text, encoding="utf-8")
        fixed = fix_all([str(place)])
        after = place.read_text(encoding="utf-8")
        is_fixed_again = bool(fix_all([str(place)]))
    said = decisions(after)
    is_wrong = said and isinstance(said[0], str)
    found = ["decides otherwise"] if said != before and not (is_wrong and good != text) else []
    found += ["is fixed again"] if is_fixed_again else []
    comments = [[one.text.rstrip() for one in tokenise(one, "").comments] for one in (text, after)]
    lost = [one for one in comments[0] if one not in comments[1] and not one.startswith(("///", "// lint:"))]
    found += [f"lost {one}" for one in lost]
    found += ["other comments"] if [one for one in comments[0] if one in comments[1]] != comments[1] else []
    docs = _docs(good)
    found += [f"{doc}: of {kind}" for doc, kind in _docs(after).items() if docs.get(doc) != kind]
    told = f"{text}\n--- fixed {[one.code for one in fixed]}:\n{after}"
    return [f"seed {seed}: {line}\n{told}" for line in found], {"texts": 1}
