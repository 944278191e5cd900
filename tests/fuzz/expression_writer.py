"""Writes one expression after another, and what each means where that is not written in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from policyengine.language.functions import FUNCTIONS, Function, Style
from policyengine.language.functions.table import substitute
from policyengine.language.schema import CLUSTER_POD, NODE
from policyengine.language.types import INT, STRING, Kind, Type, list_of, map_of, optional_of
from tests.fuzz.vocabulary import (
    BARE,
    CLUSTER_LISTS,
    LABELS,
    LITERALS,
    MEETING,
    PATTERNS,
    ROUGH,
    SCALAR_TYPES,
    ZONES,
    Named,
    Where,
    makers,
    reachable,
    readable,
    stands_for,
)

WRITTEN, PLAIN, OWN = 0, 1, 2
"""Which of the texts a mark stands for."""
LONGEST = 6000
"""Characters of a text with its marks filled in."""
_MARK = re.compile("\N{SYMBOL FOR START OF TEXT}(\\d+)\N{SYMBOL FOR END OF TEXT}")


class ExpressionWriter:
    """Writes one expression after another."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.named: list[Named] = []
        self._marks: list[tuple[str, str, str]] = []
        self._count = 0

    # --- both texts --------------------------------------------------------------------------------------

    def both(self, written: str, plain: str, own: str = "") -> str:
        """A mark for what is written in one way in the policy, and in another plainly. `own`: in its own block."""
        self._marks.append((written, plain, own or written))
        return f"\N{SYMBOL FOR START OF TEXT}{len(self._marks) - 1}\N{SYMBOL FOR END OF TEXT}"

    def resolved(self, text: str, how: int) -> str:
        """The text with its marks filled in. Raises `OverflowError` where that is long."""
        while True:
            filled = _MARK.sub(lambda mark: self._marks[int(mark[1])][how], text)
            if filled == text:
                return text
            if len(filled) > LONGEST:
                raise OverflowError
            text = filled

    def new(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def one(self, *of: str) -> str:
        return self.chance.choice(of)

    # --- expressions -------------------------------------------------------------------------------------

    def text(self, type_: Type | str, where: Where, depth: int) -> str:
        """An expression of a type."""
        wanted = Type(Kind(type_)) if isinstance(type_, str) else type_
        if depth <= 0 or self.chance.random() < 0.2:
            leaf = self.leaf(wanted, where)
            if leaf or depth <= 0:
                return leaf or self.default(wanted, where)
        forms: list[Callable[[], str]] = [lambda: self.call(wanted, where, depth - 1)] * 3
        forms += [lambda: self.conditional(wanted, where, depth - 1), lambda: self.by_name(wanted, where, depth - 1)]
        forms += [lambda: self.structured(wanted, where, depth - 1)] * 3
        if wanted.kind is not Kind.OPTIONAL:
            forms.append(
                lambda: f"{self.text(optional_of(wanted), where, depth - 1)}.orValue({self.text(wanted, where, 0)})"
            )
        for _ in range(8):
            found = self.chance.choice(forms)()
            if found and "{}" not in found:
                return found
        return self.leaf(wanted, where) or self.default(wanted, where)

    def default(self, type_: Type, where: Where) -> str:
        """Something of the type, however deep."""
        if type_.kind is Kind.OPTIONAL:
            return f"optional.of({self.text(type_.args[0], where, 0)})"
        if type_.kind is Kind.LIST:
            return f"[{self.text(type_.args[0], where, 0)}]"
        if type_.kind is Kind.MAP:
            return f'{{"app": {self.text(type_.args[1], where, 0)}}}'
        if type_.kind is Kind.STORAGE:
            return "toQuantity('1Ki', storage).orValue(1Ki)"
        raise LookupError(f"nothing of {type_}")

    def leaf(self, type_: Type, where: Where) -> str:
        """A field, variable, name or literal; '' where there is none."""
        found = [*readable(where.roots).get(type_, ()), *self._of_variables(type_, where)]
        literals = LITERALS.get(str(type_), ())
        names = [one.call for one in self.named if one.type == type_ and not one.parameters and self._fits(one, where)]
        kinds = [one for one in (found, found, literals, names) if one]
        return self.chance.choice(self.chance.choice(kinds)) if kinds else ""

    def _fits(self, one: Named, where: Where) -> bool:
        return one.needs <= where.roots

    def _of_variables(self, type_: Type, where: Where) -> Iterator[str]:
        for name, of in where.variables:
            if of == type_:
                yield name
            elif of.kind is Kind.OBJECT:
                yield from (text.replace("@", name, 1) for text, one in reachable(of.name) if one == type_)

    def conditional(self, type_: Type, where: Where, depth: int) -> str:
        """One of two, or what is behind a guard."""
        guards = {
            "string": ('"app" in {m} ? {m}["app"] : {e}', "has({m}.tier) ? {m}.tier : {e}", "{m}.?`tier`.orValue({e})"),
            "int": ("size({l}) > 1 ? {l}[1] : {e}",),
            "bool": ('("app" in {m} && {m}["app"] == {s})', "(has({m}.tier) || {e})"),
        }
        forms = guards.get(str(type_), ())
        maps = self._all_of(map_of(STRING, STRING), where)
        limits = [text.replace(".?", ".") for text in self._all_of(optional_of(type_), where) if ".limits.?" in text]
        if limits and self.chance.random() < 0.3:
            limit = self.chance.choice(limits)
            return f"(has({limit}) ? {limit} : {self.text(type_, where, depth)})"
        if not forms or self.chance.random() < 0.5 or not maps:
            parts = [self.text("bool", where, depth), self.text(type_, where, depth), self.text(type_, where, depth)]
            return "({} ? {} : {})".format(*parts)
        values = {
            "m": self.chance.choice(maps),
            "e": self.text(type_, where, depth),
            "s": self.text("string", where, 0),
        }
        values["l"] = f"[{self.text('int', where, 0)}, {self.text('int', where, 0)}]"
        return f"({self.one(*forms).format(**values)})"

    def _all_of(self, type_: Type, where: Where) -> list[str]:
        return [*readable(where.roots).get(type_, ()), *self._of_variables(type_, where)]

    def by_name(self, type_: Type, where: Where, depth: int) -> str:
        """A call of a function of the policy."""
        fitting = [one for one in self.named if one.type == type_ and one.parameters and self._fits(one, where)]
        if not fitting:
            return ""
        one = self.chance.choice(fitting)
        args = []
        for _, of in one.parameters:
            things = [name for name, kind in where.variables if kind.kind is Kind.OBJECT and stands_for(kind, of)]
            things += [of.name] * (of.name in where.roots and of.kind is Kind.OBJECT)
            if of.kind is Kind.OBJECT and not things:
                return ""
            args.append(self.chance.choice(things) if things else self.text(of, where, depth))
        plain = self._renamed(one.body)
        for (name, _), arg in zip(one.parameters, args, strict=True):
            plain = re.sub(rf"\b{name}\b", lambda _, arg=arg: arg if re.fullmatch(r"\w+", arg) else f"({arg})", plain)
        called = f"({', '.join(args)})"
        return self.both(one.call + called, f"({plain})", one.own + called)

    def _renamed(self, body: str) -> str:
        """The body with other names for the variables of its macros."""
        for name in set(re.findall(r"\bv\d+\b", body)):
            body = re.sub(rf"\b{name}\b", self.new("v"), body)
        return body

    def call(self, type_: Type, where: Where, depth: int) -> str:
        """A function or operator of the table."""
        found = [one for one in makers(type_) if self._is_written(one[0], where)]
        if not found:
            return ""
        name, overloads = self.chance.choice(found)
        overload, variables = self.chance.choice(overloads)
        bound = dict(variables)
        types = []
        for parameter in overload.parameters:
            for letter in "TKV":
                if letter in str(parameter) and letter not in bound and parameter != overload.result:
                    bound[letter] = self.chance.choice(SCALAR_TYPES) if letter != "K" else STRING
            types.append(substitute(parameter, bound))
        return self.called(FUNCTIONS[name], types, where, depth)

    def _is_written(self, name: str, where: Where) -> bool:
        return name != "random" or ("node" in where.roots and where.is_rule)

    def called(self, function: Function, types: list[Type], where: Where, depth: int) -> str:
        name = function.name
        if name == "random":
            return self.one("random()", 'random("b")')
        if name == "betaCdf":
            args = [self.text("double", where, depth), self.one("1.0", "2.0", "7.0"), self.one("1.0", "3.0")]
        else:
            args = [self.text(type_, where, depth) for type_ in types]
        if function.literals and len(args) > 1:
            args[1] = self.one(*(PATTERNS if name == "matches" else ZONES))
        if name in ROUGH:
            return f"(double(floor(clamp({name}({', '.join(args)}), -1000.0, 1000.0) * 1e6 + 0.1234567)) / 1e6)"
        if name.startswith("toQuantity/"):
            return f"toQuantity({args[0]}, {name.split('/')[1]})"
        if function.style is Style.OPERATOR:
            sign = name.strip("_@")
            return f"({f' {sign} '.join(args)})" if len(args) == 2 else f"({sign}({args[0]}))"
        if function.style is Style.METHOD or (function.style is Style.BOTH and self.chance.random() < 0.5):
            return f"({args[0]}).{name}({', '.join(args[1:])})"
        return f"{name}({', '.join(args)})"

    # --- macros, literals with parts, aggregates ---------------------------------------------------------

    def structured(self, type_: Type, where: Where, depth: int) -> str:
        """What is no function of the table."""
        match type_.kind:
            case Kind.BOOL:
                forms = (self.test, self.test, self.aggregate, self.logic, self.presence, self.meeting, self.about)
                return self.chance.choice(forms)(type_, where, depth)
            case Kind.LIST:
                return self.list(type_, where, depth)
            case Kind.MAP:
                more = f", ?'tier': {self.text(optional_of(type_.args[1]), where, depth)}" * self.chance.randrange(2)
                return f'{{"app": {self.text(type_.args[1], where, depth)}{more}}}'
            case Kind.OPTIONAL:
                return self.optional(type_, where, depth)
            case _:
                forms = (self.aggregate, self.aggregate, self.meeting) if str(type_) in MEETING else (self.aggregate,)
                return self.chance.choice(forms)(type_, where, depth)

    def meeting(self, type_: Type, where: Where, depth: int) -> str:
        """A bare literal beside something of a type."""
        of = Type(Kind.INT, (), "qos") if type_.kind is Kind.BOOL and self.chance.random() < 0.2 else None
        if of is None:
            of = Type(Kind(self.one("cpu", "memory", "storage", "double"))) if type_.kind is Kind.BOOL else type_
        paths = self._all_of(of, where)
        if not paths:
            return ""
        written, plain = self.chance.choice(BARE[str(of)])
        path, literal = self.chance.choice(paths), self.both(written, plain)
        if type_.kind is Kind.BOOL:
            forms = ["({p} {o} {q})", "({q} {o} {p})", "({p} in [{p}, {q}])"]
        else:
            forms = ["({p} + {q})", "({q} - {p})", "min({q}, {p})", "clamp({p}, {q}, {p})", "(true ? {p} : {q})"]
            forms += ["[{p}, {q}].max().orValue({q})", "optional.of({p}).orValue({q})"]
        return self.one(*forms).format(p=path, q=literal, o=self.one("<", "<=", ">", ">=", "==", "!="))

    def about(self, type_: Type, where: Where, depth: int) -> str:
        """A condition on any field of a variable."""
        variables = [(name, of.name) for name, of in where.variables if of.kind is Kind.OBJECT]
        if not variables:
            return ""
        name, thing = self.chance.choice(variables)
        path, of = self.chance.choice(reachable(thing))
        path = path.replace("@", name, 1)
        if of.kind is Kind.OPTIONAL:
            return f"{path}.hasValue()"
        if of.kind is Kind.LIST:
            return f"({path}.size() > 0)"
        if of.kind is Kind.MAP:
            return f'("app" in {path})'
        return f"({path} == {self.text(of, where, 0)})"

    def logic(self, type_: Type, where: Where, depth: int) -> str:
        sign = self.one(" && ", " || ")
        return f"({sign.join(self.text('bool', where, depth) for _ in range(self.chance.choice((2, 2, 3))))})"

    def presence(self, type_: Type, where: Where, depth: int) -> str:
        """`has(…)` of what may be absent."""
        fields = [text for of in (INT, *SCALAR_TYPES) for text in self._all_of(optional_of(of), where)]
        fields = [
            text for text in fields if re.fullmatch(r"\w+(\.\w+)*\.\??\w+", text.replace("podGroup.?", "podGroup."))
        ]
        maps = [f"{text}.tier" for text in self._all_of(map_of(STRING, STRING), where)]
        both = [text.replace(".?", ".") for text in fields if ".?" in text] + maps
        roots = [f"{root}.hasValue()" for root in ("gang", "podGroup") if root in where.roots]
        kinds = [one for one in ([f"has({text})" for text in both], roots) if one]
        return self.chance.choice(self.chance.choice(kinds)) if kinds else ""

    def _small_lists(self, where: Where) -> list[tuple[str, Type]]:
        """Lists that are not of the cluster's nodes and pods, and maps: (text, type of an element)."""
        found = [(text, of) for of, texts in readable(where.roots).items() for text in texts]
        for name, thing in where.variables:
            if thing.kind is Kind.OBJECT:
                found += [(text.replace("@", name, 1), of) for text, of in reachable(thing.name)]
        return [(text, of) for text, of in found if of.kind in (Kind.LIST, Kind.MAP) and of not in CLUSTER_LISTS]

    def test(self, type_: Type, where: Where, depth: int) -> str:
        """`all exists exists_one` over a list of something, or the keys of a map."""
        lists = self._small_lists(where)
        if lists and self.chance.random() < 0.7:
            things = [one for one in lists if one[1].args[0].kind is Kind.OBJECT]
            things = [one for one in things if one[0][0] == "v"] or things
            text, of = self.chance.choice(things if things and self.chance.random() < 0.5 else lists)
        else:
            element = self.chance.choice(SCALAR_TYPES)
            of = list_of(element) if self.chance.random() < 0.8 else map_of(STRING, element)
            text = self.text(of, where, depth)
        name = self.new("v")
        body = self.text("bool", where.with_(name, of.args[0]), depth)
        if of.args[0].kind is Kind.OBJECT and self.chance.random() < 0.5:
            text = f"{text}.filter({name}, {body})"
            return f"({self.aggregated(text, of.args[0], INT, where, depth)} > 0)"
        return f"{text}.{self.one('all', 'exists', 'exists_one', 'existsOne')}({name}, {body})"

    def list(self, type_: Type, where: Where, depth: int) -> str:
        element, name = type_.args[0], self.new("v")
        items = [self.text(element, where, depth) for _ in range(self.chance.choice((1, 2, 3)))]
        items += [f"?{self.text(optional_of(element), where, depth)}"] * self.chance.randrange(2)
        whole = f"[{', '.join(items)}]"
        lists = self._small_lists(where)
        if lists and self.chance.random() < 0.3:
            text, of = self.chance.choice(lists)
            inner = where.with_(name, of.args[0])
            test = f"{self.text('bool', inner, depth)}, " * self.chance.randrange(2)
            return f"{text}.map({name}, {test}{self.text(element, inner, depth)})"
        if self.chance.random() < 0.3:
            return f"{whole}.filter({name}, {self.text('bool', where.with_(name, element), depth)})"
        return whole

    def optional(self, type_: Type, where: Where, depth: int) -> str:
        inner, name = type_.args[0], self.new("v")
        fields = [path for path, of in reachable("podGroup") if of == inner] if "all" in where.roots else []
        if fields and self.chance.random() < 0.2:
            called = self.one('"g"', '"native"', self.text("string", where, depth))
            return f"podGroup({called}){self.chance.choice(fields).replace('@.', '.?')}"
        form = self.chance.randrange(5)
        if form == 0:
            return f"{self.text(list_of(inner), where, depth)}[?{self.text('int', where, 0)}]"
        if form == 1:
            key = self.one(*LABELS, self.text("string", where, depth))
            maps = self._all_of(map_of(STRING, STRING), where)
            if str(inner) == "string" and maps:
                return f"{self.chance.choice(maps)}[?{key}]"
            return f"{self.text(map_of(STRING, inner), where, depth)}[?{key}]"
        if form == 2:
            return f"({self.text('bool', where, depth)} ? {self.text(type_, where, depth)} : optional.none())"
        of = self.chance.choice(SCALAR_TYPES)
        held, within = self.text(optional_of(of), where, depth), where.with_(name, of)
        if form == 3:
            return f"{held}.optMap({name}, {self.text(inner, within, depth)})"
        return f"{held}.optFlatMap({name}, {self.text(type_, within, depth)})"

    def aggregate(self, type_: Type, where: Where, depth: int) -> str:
        """One value made of nodes or pods, filtered and mapped before."""
        text, element, inner = self._cluster_list(where)
        if not text:
            return ""
        if self.chance.random() < 0.4:
            name = self.new("v")
            text = f"{text}.filter({name}, {self.text('bool', inner.with_(name, element), depth)})"
        return self.aggregated(text, element, type_, inner, depth)

    def _cluster_list(self, where: Where) -> tuple[str, Type, Where]:
        """A list, its elements, and what may be read for each of them."""
        found: list[tuple[str, Type, Where]] = []
        if "all" in where.roots:
            found += [("pods", CLUSTER_POD, where.without_nodes()), ("nodes", NODE, where.without_nodes())]
        own = [(name, where) for name, of in where.variables if of == NODE]
        if "node" in where.roots:
            own += [("node", where)] * 2
        for name, inner in own:
            kept = (
                inner if name == "node" else replace(inner, variables=tuple(v for v in inner.variables if v[1] != NODE))
            )
            label = self.one(*LABELS)
            found += [(f"{name}.{field}", CLUSTER_POD, kept) for field in ("pods", "nominated")]
            found.append((f"{name}.domain({label}).pods", CLUSTER_POD, kept.without_nodes()))
            found.append((f"{name}.domain({label}).nodes", NODE, kept.without_nodes()))
        return self.chance.choice(found) if found else ("", NODE, where)

    def aggregated(self, text: str, element: Type, type_: Type, where: Where, depth: int) -> str:
        """One value of a type, made of a list of things."""
        name = self.new("v")
        inner = where.with_(name, element)
        if type_.kind is Kind.BOOL:
            body = self.text("bool", inner, depth)
            return f"{text}.{self.one('all', 'exists', 'exists_one')}({name}, {body})"
        if type_.kind is Kind.STRING:
            word = (
                f'{name}.labels[?"app"].orValue("")'
                if element in (NODE, CLUSTER_POD)
                else self.text("string", inner, 0)
            )
            return f"(({self.text('string', where, 0)} in {text}.map({name}, {word})) ? 'in' : 'out')"
        of = Type(type_.kind)
        test = f"{self.text('bool', inner, depth)}, " * (self.chance.random() < 0.3)
        values = f"{text}.map({name}, {test}{self.text(of, inner, depth)})"
        ends = [f".{end}().orValue({self.text(of, where, 0)})" for end in ("min", "max")]
        if type_.kind is not Kind.TIMESTAMP:
            ends += [".sum()"] + [".avg()", ".stddev()"] * (type_.kind is not Kind.INT)
        if type_.kind is Kind.INT:
            return self.one(f"{text}.size()", *(values + end for end in ends))
        return values + self.one(*ends)
