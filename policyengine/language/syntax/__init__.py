"""The syntax tree: what the grammar recognises, with a span on every node, before any meaning is given.

`parse` makes it, `format` prints it, `check` turns it into `ir`. Nothing here knows types.
"""

# ruff: noqa: F403 - the nodes of all files are the room's own names

from policyengine.language.syntax.expression_nodes import *
from policyengine.language.syntax.member_nodes import *
