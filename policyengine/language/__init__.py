"""Text -> typed IR. May import: `quantity`, lark, re2. No numpy, no cluster, no clock.

The phases, a file each, in order: `parse` (text -> `syntax`), `check` (-> `ir`), `rewrite` (IR -> IR).
"""
