"""Proofs: whether texts compile and pass their tests, as the work of a `limited_process`."""

from __future__ import annotations

import pkgutil
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, Final

from policyengine.compiler.assemble import PluginRegistry
from policyengine.kube.config import process
from policyengine.kube.policies.allow_list import Allowed
from policyengine.kube.policies.compiling import compiled
from policyengine.language.diagnostics import Severity

if TYPE_CHECKING:
    from policyengine.kube.limited_process import Work

WARM: Final = """policy "warm" {
  filter "f" { require node.free.cpu > 1 }
  test "t" { given node "n" { allocatable: {cpu: 4, pods: 9} } given pod "p" {} expect "p" on "n" }
}"""
"""Whatever the first text makes once for all, proofs get from the server."""


def prepared(source: str, form: str) -> Work:
    """What proves texts.

    Arguments:
        source: `module:function` that returns the registry of plugins.
        form: of log lines, `text` or `json`.
    """
    process.start_logging("warning", form)
    registry: PluginRegistry = pkgutil.resolve_name(source)()
    compiled({"warm.policy": WARM}, registry, Severity.INFO)

    def prove(request: Any) -> Any:
        data, fail_level, is_tested, may = request
        problem = compiled(data, registry, Severity(fail_level), is_tested, may and Allowed(*may)).problem
        return problem and astuple(problem)

    return prove
