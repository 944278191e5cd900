"""The typed tree that the checker makes and everything else runs: expressions, then a policy's members.

Every expression node knows its type, its shape and its place in the text. Names are resolved: a field is a
path of the schema, a call names an overload of the function table, a let or param is a reference. Dimensions
are settled: every quantity literal is an int in its dimension's grain (millicores, bytes), every duration
nanoseconds. Immutable, without numpy and without the cluster.
"""

# ruff: noqa: F403 - the nodes of all files are the room's own names

from policyengine.language.ir.typed_expressions import *
from policyengine.language.ir.typed_policy import *
