"""Writes policies at random. Which fields and functions there are it learns from the schema and the function table.

A policy is written twice at once: as an author writes it, with lets, functions, libraries, overlays and literals that
take the type they meet; and plainly, with all of that put in its place. What the first decides, an interpreter of the
second has to decide too (`tests.fuzz.rules`). Where the two differ, the text holds a mark for both: `Writer.both`.

    let a1 = pod.priority + 1                filter "f2" { require (pod.priority + 1) > 3 }
    filter "f2" { require a1 > 3 }
"""

from __future__ import annotations

from dataclasses import replace

from policyengine.language.schema import CLUSTER_POD, NODE
from policyengine.language.types import INT, STRING, Kind, Type, list_of, map_of, optional_of
from tests.fuzz.expression_writer import PLAIN, ExpressionWriter
from tests.fuzz.vocabulary import SCALAR_TYPES, Named, Where, used_roots

PARAMS = {
    "int": ("0", "3", "100"),
    "double": ("0.5", "2.5"),
    "string": ('"a"', '"zone-a"', '""'),
    "bool": ("true", "false"),
    "duration": ("90s", "2d"),
    "cpu": ("250m", "4000m"),
    "memory": ("1Gi", "1Ki"),
    "list(string)": ('["a", "b"]', '[""]'),
}


class Writer(ExpressionWriter):
    """Writes the names of one policy after another, and expressions."""

    def let(self, where: Where, prefix: str = "") -> tuple[str, Named]:
        """A let: its text, and the name with what it means."""
        name = self.new("a")
        type_ = self.chance.choice((*SCALAR_TYPES, optional_of(INT), list_of(STRING)))
        value = self.text(type_, replace(where, is_rule=False), 2)
        needs = used_roots(self.resolved(value, PLAIN))
        mark = self.both(prefix + name, f"({self._renamed(value)})", name)
        return f"let {name} = {value}", Named(mark, mark, type_, value, needs)

    def function(self, where: Where, prefix: str = "") -> tuple[str, Named]:
        """A function, of one to three parameters."""
        name = self.new("f")
        types = [*SCALAR_TYPES, NODE, CLUSTER_POD, list_of(STRING), map_of(STRING, STRING)]
        parameters = tuple((self.new("x"), self.chance.choice(types)) for _ in range(self.chance.choice((1, 2, 3))))
        result = self.chance.choice(SCALAR_TYPES)
        body = self.text(result, Where(where.roots, parameters, is_rule=False), 2)
        declared = ", ".join(f"{one}: {'pod' if of == CLUSTER_POD else of}" for one, of in parameters)
        needs = used_roots(self.resolved(body, PLAIN))
        text = f"function {name}({declared}): {result} = {body}"
        return text, Named(prefix + name, name, result, body, needs, parameters)

    def param(self, prefix: str = "") -> tuple[str, Named]:
        name = self.new("p")
        kind = self.one(*PARAMS)
        type_ = list_of(STRING) if kind.startswith("list") else Type(Kind(kind))
        mark = self.both(prefix + name, name, name)
        return name, Named(mark, mark, type_, self.one(*PARAMS[kind]))
