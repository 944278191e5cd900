"""The parts of the parser, which `language.parse` and `language.parse_expression` put together.

Order: `split` (text -> members), `tokens` (member -> tokens), `automaton` (Lark's tables at work), `members` and
`expressions` (rules -> syntax tree), `unexpected` (what to say where it stops).
"""
