"""policyengine: a Kubernetes scheduler whose behaviour is a text file.

The Python interface. Names are loaded on first use, so that `import policyengine` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policyengine.explaining import explain
    from policyengine.language.evaluate import EvaluationError, evaluate
    from policyengine.policy_compiler import PolicyError, compile_policy
    from policyengine.trials.scenario import ScenarioError
    from policyengine.trials.simulation import Simulation
    from policyengine.version import __version__

_HOMES = {
    "EvaluationError": "policyengine.language.evaluate",
    "PolicyError": "policyengine.policy_compiler",
    "ScenarioError": "policyengine.trials.scenario",
    "Simulation": "policyengine.trials.simulation",
    "compile_policy": "policyengine.policy_compiler",
    "evaluate": "policyengine.language.evaluate",
    "explain": "policyengine.explaining",
    "__version__": "policyengine.version",
}

__all__ = [
    "EvaluationError",
    "PolicyError",
    "ScenarioError",
    "Simulation",
    "__version__",
    "compile_policy",
    "evaluate",
    "explain",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module `policyengine` has no attribute `{name}`")
    return getattr(import_module(_HOMES[name]), name)
