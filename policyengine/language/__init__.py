"""Text -> typed IR. May import: `quantity`, lark, re2. No numpy, no cluster, no clock.

The phases, in order, each with a file of its name: `parse` (text -> `syntax`; its parts in `parsing`), `check`
(-> `ir`; its parts in `checking`), `rewrite` (IR -> IR). `schema` says what a rule can see, `functions` what it can
call, `evaluate` gives an expression's value one at a time.
"""
