"""A SchedulingPolicy: what its `spec` says, and the `status` that answers it.

Conditions, each of the generation that `observedGeneration` names:

| type | true where | false or unknown, with the reason |
|---|---|---|
| Accepted | spec is in order, and the name is free | Invalid, Forbidden, TestsFailed, Conflict; Unproved |
| Tested | the tests in the texts passed | TestsFailed; Invalid, Forbidden, Unproved: they were not run |
| Serving | its policies decide about pods: Serving, Canary, LastGood | Shadow, Waiting, Suspended, Rejected |
| Ready | all is as `spec` asks for | why it is not |
| Stalled | nothing changes before `spec` does, or another policy goes | (is left out) |

LastGood: the policies of an earlier `spec` go on, as the newest has errors.
`kubectl wait --for=condition=Ready` waits for the newest spec. kstatus, by which Flux and others judge, reads Ready and
Stalled: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from policyengine.cluster.kinds import SCHEDULING_POLICIES
from policyengine.cluster.workload_objects import SchedulingPolicy
from policyengine.control_characters import escaped
from policyengine.kube.http.client import JSON_PATCH
from policyengine.kube.policies.config_map import LABEL_SELECTOR, ConfigMapSource
from policyengine.kube.policies.params_file import PARAMS_FIELD
from policyengine.kube.policies.precedence import CONFLICT, LAST_GOOD, SERVING, TESTS_FAILED, UNPROVED, WAITING, Problem
from policyengine.kube.policies.rollout_settings import BUDGET, MODE, NAMESPACES, PERCENT, SAMPLE, without_nulls
from policyengine.kube.policies.sources import (
    ACCEPTED,
    POLICY_SUFFIX,
    REJECTED,
    SUSPENDED,
    Patch,
    PolicySource,
    Report,
    suspension_in,
    tried_in,
)
from policyengine.plain_yaml import MAX_DEPTH

FIELDS = {
    MODE: "spec.mode",
    SAMPLE: "spec.shadow.sample",
    NAMESPACES: "spec.canary.namespaceSelector",
    PERCENT: "spec.canary.percent",
    BUDGET: "spec.budget",
}
"""Setting of a candidate -> the field that says it."""
MOST = 1024
"""Characters of a message."""
_REASON_SUSPENDED = "Suspended"
_VERDICT = ("observedGeneration", "hash", "schedulerNames", "findings", "findingCount")


class SchedulingPolicySource(PolicySource):
    """A SchedulingPolicy."""

    KIND, SETTINGS = SCHEDULING_POLICIES, FIELDS

    def __init__(self, policy: SchedulingPolicy) -> None:
        spec, status = policy.spec, policy.status
        self.metadata, self.version, self.status = policy.metadata, policy.metadata.generation, status
        self.texts, self.unusable = dict(sorted(spec.policies.items())), ""
        if not spec.policies:
            self.unusable = "`spec.policies` has no policy"
        elif wrong := [name for name in spec.policies if not name.endswith(POLICY_SUFFIX)]:
            self.unusable = f"`{wrong[0]}` under `spec.policies` does not end in `{POLICY_SUFFIX}`"
        elif _is_deeper(spec.params, MAX_DEPTH):
            self.unusable = f"`{PARAMS_FIELD}` is nested too deeply"
        elif spec.params:
            self.texts[PARAMS_FIELD] = json.dumps(spec.params, sort_keys=True)
        written: dict[str, object] = {
            MODE: None if spec.mode == "Serve" else spec.mode.lower(),
            SAMPLE: spec.shadow.sample,
            NAMESPACES: spec.canary.namespace_selector,
            PERCENT: spec.canary.percent,
            BUDGET: spec.budget,
        }
        self.written_settings = {setting: value for setting, value in written.items() if value is not None}
        found = status.get("conditions")
        rows = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        self._conditions: dict[str, dict[str, Any]] = {str(one.get("type")): one for one in rows}
        accepted, serving = self._conditions.get("Accepted"), self._conditions.get("Serving", {})
        is_suspended = serving.get("reason") == _REASON_SUSPENDED
        self.is_answered, self.verdict, self.said = bool(rows), "", ""
        if accepted is not None and status.get("observedGeneration") == self.version:
            self.verdict = ACCEPTED if accepted.get("status") == "True" else REJECTED
            if is_suspended:
                self.verdict = SUSPENDED
            self.said = str(accepted.get("message") or "")
        self.suspension = suspension_in(status, str(serving.get("message"))) if is_suspended else None

    def patch(self, report: Report, now: str) -> Patch:
        """See `PolicySource`. The object is to be the one with this UID: another one of its name has generations of
        its own."""
        meta = self.metadata
        body = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "add", "path": "/status", "value": self.answer(report, now)},
        ]
        return Patch(self.KIND.path(meta.namespace, meta.name, "status"), body, JSON_PATCH)

    def answer(self, report: Report, now: str) -> dict[str, Any]:
        """See `PolicySource`. A condition keeps its time for as long as it stays what it is."""
        generation, before = report.version, self._conditions
        conditions = []
        for type_, value, reason, message in _conditions(report):
            since = before.get(type_, {})
            conditions.append(
                {
                    "type": type_,
                    "status": value,
                    "observedGeneration": generation,
                    "lastTransitionTime": since.get("lastTransitionTime", now) if since.get("status") == value else now,
                    "reason": reason,
                    "message": escaped(message)[:MOST],
                }
            )
        problem = report.problem or Problem("")
        findings = [{name: value for name, value in one._asdict().items() if value} for one in problem.findings]
        status: dict[str, Any] = {
            "observedGeneration": generation,
            "hash": report.policy_hash,
            "schedulerNames": list(report.scheduler_names),
            "conditions": conditions,
            "findings": findings,
            "findingCount": problem.count,
        }
        return status if report.rollout is None else status | {"rollout": without_nulls(report.rollout)}

    @staticmethod
    def verdict_of(status: Mapping[str, Any]) -> tuple[object, ...]:
        """See `PolicySource`."""
        conditions = status.get("conditions")
        rows = [
            {name: value for name, value in one.items() if name != "lastTransitionTime"}
            if isinstance(one, dict)
            else one
            for one in (conditions if isinstance(conditions, list) else ())
        ]
        return rows, *(status.get(name) for name in _VERDICT), tried_in(status)


def _is_deeper(value: Any, depth: int) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return depth < 0 or any(_is_deeper(one, depth - 1) for one in inner)


def _conditions(report: Report) -> Iterator[tuple[str, str, str, str]]:
    """(type, status, reason, message)."""
    problem, is_good = report.problem, report.state == ACCEPTED
    how = _REASON_SUSPENDED if report.state == SUSPENDED else report.how
    reason, message = how, report.note
    if problem is not None:
        more = f"; {problem.count - 1} more" if problem.count > 1 else ""
        place = f"line {problem.line}, column {problem.column}: " if problem.line else ""
        reason, message = problem.reason, f"{place}{problem.message[:MOST]}{more}"
    is_unproved, is_tested = reason == UNPROVED, problem is None or reason == CONFLICT
    if problem is None:
        yield "Accepted", "True", "Accepted", ""
    else:
        yield "Accepted", "Unknown" if is_unproved else "False", reason, message
    if is_tested:
        yield "Tested", "True", "TestsPassed", ""
    else:
        yield "Tested", "False" if reason == TESTS_FAILED else "Unknown", reason, message
    names = ", ".join(f"`{name}`" for name in report.scheduler_names)
    serves = how in (SERVING, LAST_GOOD, "Canary")
    yield "Serving", str(serves), how, report.note or (f"pods of {names}" if names else message)
    is_ready = is_good and how != WAITING
    yield "Ready", str(is_ready), reason, message
    if not is_good and not is_unproved:
        yield "Stalled", "True", reason, message


Form = type[ConfigMapSource] | type[SchedulingPolicySource]
FORMS: Final[tuple[Form, ...]] = (ConfigMapSource, SchedulingPolicySource)


def selector(form: Form, given: str = LABEL_SELECTOR) -> str:
    """The label selector of those that are read, for the one of the configuration.

    SchedulingPolicies are policies without a label. A label of the operator's own choice tells the policies of several
    installations apart: it holds for both.
    """
    return "" if form is SchedulingPolicySource and given == LABEL_SELECTOR else given
