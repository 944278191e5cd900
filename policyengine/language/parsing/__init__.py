"""Text -> syntax tree: the parts of the parser, which `language.parse` puts together.

`tokens` cuts a text into tokens, with `mistyped` for what is none, and `split` cuts these into members. `member_parser`
feeds those of a member to the parser that Lark makes of `grammar`; `expression_actions` and `member_actions` make
syntax nodes of the parts of a rule; `unexpected` says what is wrong where a parse stops. `parse`, the formatter, the
language server and what reads an expression alone may import this room; it imports `syntax` and `diagnostics`.
"""
