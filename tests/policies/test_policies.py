"""Every policy in `policies/` compiles without a finding, does what the tests in it say, and is covered by them.

The runner here is as plain as it can be: it takes pods in queue order, asks the evaluator, and assumes the choice. It
runs the tests whose steps it knows; `policyengine test` runs them all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import ClusterView
from policyengine.compiler.coverage import Coverage
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.profile import Profile
from policyengine.language import ir
from policyengine.language.diagnostics import Source, render
from policyengine.language.format import format_source
from policyengine.language.ir import test_nodes as ir_test
from policyengine.policy_compiler import checked_files, compile_files
from policyengine.trials.policy_test import TestedPolicy, in_file_tests, run_tests

FOLDER = Path(__file__).resolve().parents[2] / "policies"
FILES = sorted(FOLDER.glob("*.policy"))
LIBRARIES = sorted((FOLDER / "lib").glob("*.policy"))


def source_of(file: Path) -> Source:
    return Source(file.name, file.read_text(encoding="utf-8"))


def sources_of(file: Path) -> list[Source]:
    """The policy's file, and the libraries that any policy may import."""
    return [source_of(one) for one in (file, *LIBRARIES)]


def policy_of(file: Path) -> ir.Policy:
    policies, findings = checked_files(sources_of(file))
    assert not findings, render(findings, source_of(file))
    assert len(policies) == 1
    return policies[0]


def cases_of(file: Path) -> list[Any]:
    policy = policy_of(file)
    tests = [test for test in in_file_tests(policy) if is_plain(policy, test)]
    return [pytest.param(file, test, id=f"{file.stem}: {test.name}") for test in tests]


def is_plain(policy: ir.Policy, test: ir_test.Test) -> bool:
    if policy.queue.fair_by is not None or policy.quotas or policy.permits or policy.preempt:
        return False
    steps = [
        step for step in test.steps if not isinstance(step, ir_test.ExpectThat | ir_test.GivenParam | ir_test.After)
    ]
    groups = any(isinstance(step, ir_test.GivenPod) and "group" in step.fields for step in steps)
    return len(steps) == len(test.steps) and not groups


def test_there_are_policies_worth_copying() -> None:
    assert {file.stem for file in FILES} >= {"riya", "training"}
    assert len(FILES) >= 5


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_policy_compiles_without_a_finding_and_has_tests(file: Path) -> None:
    result = compile_files(sources_of(file))
    assert not result.diagnostics, render(result.diagnostics, result.sources[0])
    assert [profile.name for profile in result.profiles] == [file.stem]
    assert policy_of(file).tests


@pytest.mark.parametrize("file", [*FILES, *LIBRARIES], ids=lambda file: file.stem)
def test_a_policy_is_written_in_the_one_style(file: Path) -> None:
    assert format_source(source_of(file)) == (source_of(file).text, [])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_tests_of_a_policy_pass_and_see_every_branch_of_it(file: Path) -> None:
    policy = policy_of(file)
    coverage = Coverage(policy)
    for outcome in run_tests(TestedPolicy(policy, in_file_tests(policy)), coverage=coverage):
        assert outcome.passed, outcome.failures
    assert [(point.what, point.missing) for point in coverage.points if point.missing] == []
    assert all(ir_test.vacuous(test) is None for test in in_file_tests(policy))


@pytest.mark.parametrize(("file", "test"), [one for file in FILES for one in cases_of(file)])
def test_a_policy_does_what_its_tests_say(file: Path, test: ir_test.Test) -> None:
    profile = compile_files(sources_of(file)).profiles[0]
    Runner(profile).run(test)


class Runner:
    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.evaluator = Evaluator(profile)
        self.view = ClusterView()
        self.waiting: dict[str, PodInfo] = {}
        self.popped: list[str] = []
        self.diagnoses: dict[str, Diagnosis] = {}
        self.created = 0

    def run(self, test: ir_test.Test) -> None:
        for step in test.steps:
            match step:
                case ir_test.GivenNode():
                    self.view.add_or_update_node(node(step))
                case ir_test.GivenPod():
                    self.created += 1
                    self.view.add_or_update_pod(pod(step, self.created))
                case _:
                    self.schedule()
                    assert self.holds(step), f"`{test.name}`: {step} does not hold: {self.timeline()}"

    def schedule(self) -> None:
        pending = [info for info in self.view.pods.values() if info.state is PodState.PENDING]
        pending.sort(key=lambda info: self.profile.queue_key(info, info.created_at))
        for info in pending:
            if self.waits(info):
                continue
            if info.name not in self.popped:
                self.popped.append(info.name)
            snapshot = self.view.snapshot()
            diagnosis = self.diagnoses[info.name] = self.evaluator.filter(info, snapshot)
            if len(diagnosis.feasible):
                node_scores = self.evaluator.score(info, snapshot, diagnosis)
                self.view.assume(info.uid, snapshot.nodes.names[node_scores.best(info.uid)])

    def waits(self, info: PodInfo) -> bool:
        for gang in self.profile.gangs:
            key = gang.key(info)
            if key is not None:
                members = [other for other in self.view.pods.values() if gang.key(other) == key]
                return len(members) < max(gang.minimum(other) for other in members)
        return False

    def holds(self, step: ir_test.Step) -> bool:
        match step:
            case ir_test.ExpectOn():
                return self.view.find_pod("default", step.pod).node_name == step.node
            case ir_test.ExpectBefore():
                return self.popped.index(step.pod) < self.popped.index(step.other)
            case ir_test.ExpectWaits():
                return self.waits(self.view.find_pod("default", step.pod))
            case ir_test.ExpectRejected():
                return self.rejected(step)
        raise AssertionError(step)

    def rejected(self, step: ir_test.ExpectRejected) -> bool:
        diagnosis = self.diagnoses[step.pod]
        if step.node is None:
            return len(diagnosis.feasible) == 0 and (step.rule is None or step.rule in diagnosis.plugins)
        status = diagnosis.refusal(self.view.nodes.row_of[step.node])
        return status.is_rejection and (step.rule is None or status.plugin == step.rule)

    def timeline(self) -> str:
        placed = {info.name: info.node_name for info in self.view.pods.values()}
        refusals = {name: diagnosis.message() for name, diagnosis in self.diagnoses.items()}
        return f"popped {self.popped}, placed {placed}, {refusals}"


def node(step: ir_test.GivenNode) -> Node:
    fields = step.fields
    labels = dict(fields.get("labels", {}))
    if "zone" in fields:
        labels["topology.kubernetes.io/zone"] = fields["zone"]
    amounts = {name: str(amount) for name, amount in fields.get("allocatable", {}).items()}
    status = {
        "allocatable": amounts,
        "capacity": amounts,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    metadata = {
        "name": step.name,
        "uid": step.name,
        "labels": labels,
        "annotations": fields.get("annotations", {}),
    }
    return decode(Node, {"metadata": metadata, "spec": {}, "status": status})


def pod(step: ir_test.GivenPod, number: int) -> Pod:
    fields = step.fields
    resources = {
        kind: {name: str(amount) for name, amount in fields.get(kind, {}).items()} for kind in ("requests", "limits")
    }
    spec = {
        "containers": [{"name": "c", "image": "app", "resources": resources}],
        "priority": fields.get("priority", 0),
        "nodeName": step.on or "",
    }
    metadata = {
        "name": step.name,
        "namespace": fields.get("namespace", "default"),
        "uid": step.name,
        "labels": fields.get("labels", {}),
        "annotations": fields.get("annotations", {}),
        "creationTimestamp": f"2026-01-01T00:00:{number:02d}Z",
    }
    return decode(Pod, {"metadata": metadata, "spec": spec, "status": {}})
