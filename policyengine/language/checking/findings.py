"""The findings of the checker: their codes with the page that `lint --explain` prints, where they go, and fixes."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from policyengine.language import ir
from policyengine.language.diagnostics import (
    Diagnostic,
    Fix,
    Related,
    Severity,
    pages_of,
    printable,
    register,
    replacing,
)
from policyengine.language.syntax import Span
from policyengine.language.types import ERROR, Type
from policyengine.suggestion import closest

_PAGES = """\
PE1001 unknown name
A name is a root of the schema (`pod`, `node`, `cluster`, `now`, …), a `param`, a `let`, or a variable
of a macro around it. Order does not matter: a let may be used before the line that defines it.

PE1002 unknown field
The thing on the left has no such field. Labels and annotations are maps: `pod.labels[?"app"]`.

PE1003 unknown function
No function of that name is known. Some are written as `f(x)`, some as `x.f()`.

PE1004 operands that do not go together
Operators and functions take the types their page names. An int and a double do not mix: write
`double(n)`. `+`, `-` and comparisons want one dimension; a quantity times a quantity is nothing.

PE1005 wrong type
The place wants one type and the expression has another: a `require` and a `when` want a bool, a score
a number, a queue key something that can be ordered.

PE1006 a literal that does not fit
A literal takes the dimension it meets. `5m` is five milli: minutes are `5min`. `2Gi` is no amount of
cpu, and a duration needs a unit.

PE1007 a value that may be absent
`pod.labels["x"]` compiles only where `"x" in pod.labels` or `has` guards it: on the left of `&&`, in
the condition of `?:`, in the rule's `when`, in an earlier `require`. Otherwise say what holds without
it: `pod.labels[?"x"].orValue("")`.

PE1008 CEL that policies leave out
Policies have no bytes, uint, messages, null, mixed lists, nor `.value()`: what may be absent is an
optional with a default. `policyengine.evaluate` takes more.

PE1009 a name that is taken
A let, param, function or variable may not redefine or shadow a name that is visible.

PE1011 read in the wrong place
A `when` reads no node; a queue key reads only pod, podGroup and params; a gang's fields only what is
known of the pod.

PE1012 a literal is wanted
Patterns of `matches` and time zones are literals, so that they are checked when the policy loads.

PE1013 a field that is always there
`has` and `.?` are for what may be absent; this field never is.

PE1014 names that need each other
A let may not, through others, need its own value; a function may not, through others, call itself.

PE1015 a type that cannot be told
Nothing around an empty list, an empty map or `optional.none()` says what it holds; and `1G` alone may
be bytes or cores.

PE1016 a macro written wrongly
`has(x.f)` takes a field; `list.all(x, e)` and its kin a new name and an expression.

PE1017 nodes times nodes
The expression would go through all nodes or pods once for every node, or for every pod. `node.pods` is
what stands on a node; `node.domain("topology.kubernetes.io/zone").pods` what stands on the nodes that
share a label with it. `nodes` and `pods` may be compared with what is the same for all nodes.

PE1018 a list of the cluster where a value is wanted
`nodes`, `pods` and what is filtered and mapped from them have no order and may be long. Ask them
something: `.exists(p, …)`, `.all(…)`, `.size()`, `.map(p, …).sum()`, `x in nodes.map(n, n.name)`.

PE2001 a member given twice
`scheduler base share queue preempt bind` appear at most once in a policy.

PE2002 two things of one name
A rule appears under its name wherever a plugin's does, so no two of a kind share
one, such as two filters, and none has a plugin's. Nor do two policies of a file.

PE2003 unknown plugin
No plugin of that name is installed.

PE2004 arguments the plugin does not take
The arguments after `use` are checked against the plugin's own schema.

PE2005 a wrong weight
A weight is an int literal, or an int param, of at least 1.

PE2006 a score without bounds
A score without `normalize` counts as it is, so it must stay within bounds the checker can tell: use
`clamp(e, 0, 100)`, `ratio(a, b)`, or `normalize max`.

PE2007 a param outside its bounds
The default of a param lies in its `range`, or among its `values`.

PE2008 a field is missing
A gang needs `key`, `min` and `timeout`; a quota `guarantee` or `limit`; a permit one of `delay` and
`until`; a preempt at least one of `victims`, `order by` and `maxVictims`.

PE2009 a time out of order
Times are positive, and the first backoff is not above the last.

PE2010 a rule that does nothing
A filter without a `require` refuses nothing.

PE2012 a word that is none of those allowed
The page of the member lists what may stand there.

PE2013 a test that cannot be run
A test names nodes and pods it gave before, and fields that a given node or pod has.

PE2014 two policies for one scheduler name
A pod is served by one policy of a file.

PE2015 too many findings
The first hundred findings of a file are shown; the rest once these are gone.

PE2016 an amount that cannot be
Amounts are not negative, no guarantee is above its limit, and `maxVictims` is at least 1.

PE2017 a library that cannot be imported
`import "safe"` names a library among the files that are loaded together: those given to one command, or
the keys of one ConfigMap. It is known as `safe` here, or as what `as` says. No two have one name, no
libraries import each other in a circle.

PE2018 an overlay on no policy
`overlay "team" on "shared"` adds to a policy among the files that are loaded together, and has a name
no other overlay of that policy has.

PE2019 a policy that costs too much
What a policy costs is known before it runs, and has a limit: how often its functions are called, how
large what a call stands for becomes, how much work one decision over 5,000 nodes is. Name parts with
`let`, which is worked out once, and nest macros over long lists less deeply.
"""
CHECK_CODES = pages_of(_PAGES)
register(CHECK_CODES)

LONGEST_MESSAGE = 400
MOST_COMPARED = 1_000_000
"""Pairs of letters of misspelt and known names that are compared in one file: a fifth of a second."""


class Report(Struct):
    """Collects findings of one file."""

    file: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    types: dict[Span, Type] = field(default_factory=dict)
    """The type of each expression of the file that was checked, by its place: what editors show."""
    _compared: int = 0

    def apart(self) -> Report:
        """Another report of the same file, with findings of its own. What is learnt of types is shared."""
        return Report(self.file, types=self.types)

    def error(
        self, code: str, message: str, span: Span, fix: Fix | None = None, related: tuple[Related, ...] = ()
    ) -> ir.Const:
        """Reports what keeps the policy from loading, and returns what stands for it: its type silences what
        follows."""
        assert code in CHECK_CODES
        message = printable(message)
        message = message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + "…"
        self.diagnostics.append(Diagnostic(code, Severity.ERROR, message, self.file, span, fix, related))
        return error_at(span)

    def unknown(
        self,
        code: str,
        message: str,
        span: Span,
        word: str,
        known: Iterable[str],
        *,
        shown: str = "{}",
        fix: str | None = "{}",
        otherwise: str = "",
    ) -> ir.Const:
        """Reports a word that means nothing here, with the known one that was probably meant.

        Arguments:
            shown, fix: how that one is written in the message, and in the fix; None for no fix.
            otherwise: the end of the message where no known word is near.
        """
        close = self.closest(word, known)
        hint = f"; did you mean `{shown.format(close)}`?" if close else otherwise
        return self.error(code, message + hint, span, replacing(span, fix.format(close)) if close and fix else None)

    def closest(self, word: str, known: Iterable[str]) -> str | None:
        """The known name that was probably meant, None without one; after many guesses none is made, and `known` is not
        even listed."""
        if self._compared > MOST_COMPARED:
            return None
        names = list(known)
        self._compared += len(word) * sum(map(len, names))
        return closest(word, names) if self._compared <= MOST_COMPARED else None


def error_at(span: Span) -> ir.Const:
    """What stands for an expression that was reported."""
    return ir.Const(type=ERROR, span=span, value=None)
