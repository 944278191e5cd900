"""The grammar's terminals in groups: what can begin an expression, what joins two, which bracket closes which."""

from __future__ import annotations

RESERVED = frozenset({"TRUE", "FALSE", "NULL", "IN"})
"""Words that are never names."""
LITERALS = frozenset({"TRUE", "FALSE", "NULL", "INT", "UINT", "FLOAT", "QUANTITY", "DURATION", "STRING", "BYTES"})
BEGINNINGS = LITERALS | {"NAME", "DOT", "LPAR", "LSQB", "LBRACE", "NOT", "MINUS"}
"""An expression begins with one of these."""
BINARY = frozenset({"OR", "AND", "COMPARISON", "IN", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT"})
"""Operators between two expressions."""
OPERATORS = BINARY | {"QMARK", "DOT", "LSQB", "LPAR"}
"""Whatever goes on with an expression."""
CLOSING = {"LPAR": ")", "LSQB": "]", "LBRACE": "}"}
"""Opening brackets, and the text of those that close them."""
OPENING = {"RPAR": "LPAR", "RSQB": "LSQB", "RBRACE": "LBRACE"}
"""Closing brackets, and the terminals of those that open them."""
