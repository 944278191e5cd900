"""The forms in which policies stand in the API, and which objects of each are read."""

from __future__ import annotations

from typing import Final

from policyengine.kube.policies.config_map import LABEL_SELECTOR, ConfigMapSource
from policyengine.kube.policies.scheduling_policy import SchedulingPolicySource

Form = type[ConfigMapSource] | type[SchedulingPolicySource]
FORMS: Final[tuple[Form, ...]] = (ConfigMapSource, SchedulingPolicySource)


def selector(form: Form, given: str = LABEL_SELECTOR) -> str:
    """The label selector of those that are read, for the one of the configuration.

    SchedulingPolicies are policies without a label. A label of the operator's own choice tells the policies of several
    installations apart: it holds for both.
    """
    return "" if form is SchedulingPolicySource and given == LABEL_SELECTOR else given
