"""Text -> syntax tree: the parts of the parser, which `language.parse` puts together.

`tokens` cuts a text into tokens, with `mistyped` for what is none, and `split` cuts these into members. `member_parser`
runs Lark on a member, by `grammar`; `expression_actions` and `member_actions` turn its tree into syntax nodes, and
`unexpected` says what is wrong where a parse stops. `parse`, the formatter and the language server may import this
room; it imports `syntax` and `diagnostics`.
"""
