"""Blocks of `name: value` fields, and what is read out of them: gang, quota, permit, bind, and a test's steps."""

# ruff: noqa: D102 - an action does what its rule in the grammar says

from __future__ import annotations

from collections.abc import Mapping

from policyengine.language import syntax
from policyengine.language.diagnostics import Diagnostic, Edit, Fix
from policyengine.language.parsing.expression_actions import ExpressionActions
from policyengine.language.parsing.string_templates import parse_template
from policyengine.language.parsing.tokens import Token
from policyengine.language.suggestion import closest
from policyengine.language.syntax import Expr, Member, NameText, Span
from policyengine.language.syntax_codes import quoted, syntax_error

Field = tuple[NameText, bool, Expr]
"""A field's name, whether it was quoted, and its value."""
Fields = tuple[Span, tuple[Field, ...]]

FIELDS_OF: Mapping[str, tuple[str, ...]] = {
    "gang": ("key", "min", "timeout", "waits"),
    "quota": ("guarantee", "limit", "borrow"),
    "permit": ("delay", "until", "timeout"),
    "bind": ("annotations",),
}
"""Member -> the names of its fields."""

MAX_FILLED_IN = 10_000
"""Pieces of text and expressions in all messages of a file; each expression is parsed by itself."""


class FieldActions(ExpressionActions):
    """An action a rule, under the rule's name."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self._filled_in = 0

    # --- names ----------------------------------------------------------------------------------------

    def text(self, token: Token) -> NameText:
        """A quoted name."""
        return NameText(span=token.span, text=self.text_of(token))

    def bare(self, token: Token) -> NameText:
        """A name without quotes."""
        self._check_word(token)
        return NameText(span=token.span, text=token.text)

    def name(self, _start: int, _end: int, token: Token) -> NameText:
        return self.text(token) if token.kind == "STRING" else self.bare(token)

    def dotted_name(self, start: int, end: int, *parts: Token) -> NameText:
        return NameText(span=Span(start, end), text=".".join(self.bare(part).text for part in parts))

    def type_ref(self, start: int, end: int, name: Token, *args: syntax.TypeRef | None) -> syntax.TypeRef:
        present = tuple(arg for arg in args if arg is not None)
        return syntax.TypeRef(span=Span(start, end), name=self.bare(name).text, args=present)

    def template(self, token: Token) -> syntax.Template:
        """A string in which `{expr}` is filled in."""
        if not self._check_length(token):
            return syntax.Template(span=token.span, parts=())
        if self._filled_in > MAX_FILLED_IN:
            return syntax.Template(span=token.span, parts=())
        found, findings = parse_template(token.text, token.start, self.file)
        self.findings += findings
        self._filled_in += len(found.parts)
        if self._filled_in > MAX_FILLED_IN:
            message = f"the messages of the file have more than {MAX_FILLED_IN:,} parts; split the file"
            self._report("PE0402", message, token.span)
        return found

    # --- fields ---------------------------------------------------------------------------------------

    def fields(self, start: int, end: int, *found: Field) -> Fields:
        return Span(start, end), found

    def field(self, _start: int, _end: int, key: Token, value: Expr) -> Field:
        quoted_key = key.kind == "STRING"
        return (self.text(key) if quoted_key else self.bare(key)), quoted_key, value

    def as_map(self, fields: Fields) -> syntax.MapLiteral:
        """A block as the map it stands for; a bare key stays a name, as in any map literal."""
        entries = []
        for key, in_quotes, value in fields[1]:
            left: Expr = syntax.Name(span=key.span, name=key.text)
            if in_quotes:
                left = syntax.Literal(span=key.span, value=key.text)
            span = Span(key.span.start, value.span.end)
            entries.append(syntax.MapEntry(span=span, key=left, value=value))
        return syntax.MapLiteral(span=fields[0], entries=tuple(entries))

    def _named(self, member: str, fields: Fields) -> dict[str, Expr]:
        """The fields by name; an unknown or repeated one is reported and left out."""
        known = FIELDS_OF[member]
        found: dict[str, Expr] = {}
        for key, _, value in fields[1]:
            if key.text not in known:
                self.findings.append(self._unknown(member, key, known))
            elif key.text in found:
                self._report("PE0302", f"{quoted(key.text)} is given twice", key.span)
            else:
                found[key.text] = value
        return found

    def _unknown(self, member: str, key: NameText, known: tuple[str, ...]) -> Diagnostic:
        near, fix = closest(key.text, known), None
        message = f"a {member} has no field {quoted(key.text)}"
        if near:
            fix = Fix(f"write `{near}`", (Edit(key.span, near),))
            message += f"; did you mean `{near}`?"
        else:
            message += f"; it has {', '.join(f'`{name}`' for name in known)}"
        return syntax_error("PE0301", message, self.file, key.span, fix)

    def _map(self, name: str, value: Expr | None) -> syntax.MapLiteral | None:
        """The value of a field that takes a map."""
        if value is None or isinstance(value, syntax.MapLiteral):
            return value
        self._report("PE0303", f"`{name}` takes a map, such as `{{cpu: 4, memory: 8Gi}}`", value.span)
        return None

    # --- members made of fields -----------------------------------------------------------------------

    def gang(self, start: int, end: int, name: Token, when: Expr | None, fields: Fields) -> Member:
        found = self._named("gang", fields)
        return syntax.Gang(
            span=Span(start, end),
            name=self.text(name),
            when=when,
            key=found.get("key"),
            min=found.get("min"),
            timeout=found.get("timeout"),
            waits=found.get("waits"),
        )

    def quota(self, start: int, end: int, name: Token, when: Expr, fields: Fields) -> Member:
        found = self._named("quota", fields)
        return syntax.Quota(
            span=Span(start, end),
            name=self.text(name),
            when=when,
            guarantee=self._map("guarantee", found.get("guarantee")),
            limit=self._map("limit", found.get("limit")),
            borrow=found.get("borrow"),
        )

    def permit(self, start: int, end: int, name: Token, when: Expr | None, fields: Fields) -> Member:
        found = self._named("permit", fields)
        return syntax.Permit(
            span=Span(start, end),
            name=self.text(name),
            when=when,
            delay=found.get("delay"),
            until=found.get("until"),
            timeout=found.get("timeout"),
        )

    def bind(self, start: int, end: int, fields: Fields) -> Member:
        found = self._map("annotations", self._named("bind", fields).get("annotations"))
        pairs = [self._annotation(entry) for entry in found.entries] if found else []
        return syntax.BindAnnotations(span=Span(start, end), annotations=tuple(p for p in pairs if p))

    def _annotation(self, entry: syntax.MapEntry) -> tuple[NameText, syntax.Template] | None:
        key, value = entry.key, entry.value
        if isinstance(key, syntax.Name):
            name = key.name
        elif isinstance(key, syntax.Literal) and isinstance(key.value, str):
            name = key.value
        else:
            self._report("PE0303", "an annotation's key is a string", key.span)
            return None
        written = self.strings.get(value.span.start)
        if not isinstance(value, syntax.Literal) or not isinstance(value.value, str) or written is None:
            message = "an annotation's value is a string; fill in what you need with `{expr}`"
            self._report("PE0303", message, value.span)
            return None
        token = Token("STRING", written, value.span.start, value.span.end)
        return NameText(span=key.span, text=name), self.template(token)
