"""The typed tree that the checker makes and everything else runs: expressions, then a policy's members.

Every expression node knows its type, its shape and its place in the text. Names are resolved: a field is a
path of the schema, a call names an overload of the function table, a let or param is a reference. Dimensions
are settled: every quantity literal is an int in its dimension's grain (millicores, bytes), every duration
nanoseconds. Immutable, without numpy and without the cluster.
"""

from policyengine.language.ir.typed_expressions import (
    Call,
    Comprehension,
    Conditional,
    Const,
    Expr,
    Field,
    Fold,
    Has,
    Index,
    LetRef,
    ListExpr,
    Local,
    Logic,
    MapExpr,
    OptMap,
    ParamRef,
    Select,
    Template,
)
from policyengine.language.ir.typed_policy import (
    Let,
    Param,
    PluginUse,
    Policy,
    Queue,
)
from policyengine.language.ir.typed_rules import (
    Amounts,
    BindAnnotation,
    Filter,
    Gang,
    Normalize,
    OnLog,
    OrderKey,
    Permit,
    Preempt,
    Quota,
    Require,
    Score,
)

__all__ = [
    "Amounts",
    "BindAnnotation",
    "Call",
    "Comprehension",
    "Conditional",
    "Const",
    "Expr",
    "Field",
    "Filter",
    "Fold",
    "Gang",
    "Has",
    "Index",
    "Let",
    "LetRef",
    "ListExpr",
    "Local",
    "Logic",
    "MapExpr",
    "Normalize",
    "OnLog",
    "OptMap",
    "OrderKey",
    "Param",
    "ParamRef",
    "Permit",
    "PluginUse",
    "Policy",
    "Preempt",
    "Queue",
    "Quota",
    "Require",
    "Score",
    "Select",
    "Template",
]
