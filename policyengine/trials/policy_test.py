"""Runs the tests of policies: parsed, checked and compiled as everywhere, then a `Trial`, then what was expected.

Three callers: `policyengine test` runs them all (`run_tests`); a policy that fails its tests is not loaded
(`held_to_tests`); small changes to a policy show what its tests do not notice (`mutate`).

Pods without `on` are scheduled until nothing moves whenever something is expected or time passes. The clock starts
at the first `given now`, else at `START`, and moves only by `after` and later `given now`s. Deterministic and pure:
a run is bounded by steps, not by time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from typing import Final

from msgspec.structs import replace

from policyengine.cluster.objects import ObjectError
from policyengine.compiler.assemble import PluginRegistry
from policyengine.compiler.coverage import Coverage
from policyengine.compiler.front import FAILED_TEST
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile
from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic, Severity
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.mutants import Mutant, mutants
from policyengine.language.syntax import Span
from policyengine.language.values import format_timestamp
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import CompileResult, compile_checked
from policyengine.scheduler.messages import Message, NodeObserved, ObjectObserved, PodObserved, ProfileReplaced
from policyengine.trials.policy_test_objects import given_group, given_namespace, given_node, given_pod
from policyengine.trials.policy_test_verdict import Failure, Run, verdict
from policyengine.trials.trial import Trial, TrialTooLong
from policyengine.trials.trial_attempts import assumed_since, attempted

START: Final = 1_767_225_600 * 10**9
"""2026-01-01T00:00:00Z, in nanoseconds: what time it is in a test that does not say."""
STEPS: Final = 20_000
"""Messages that one test may take."""
MOST_MUTANTS: Final = 200
"""Mutants tried of one policy unless told otherwise; of more, every n-th."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one test."""

    policy: str
    name: str
    file: str
    """Where the test is written; spans are in it."""
    span: Span
    failures: tuple[Failure, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether everything expected held."""
        return not self.failures


@dataclass(frozen=True, slots=True)
class TestedPolicy:
    """A checked policy and the tests to run of it: those in it, or those of a suite."""

    __test__ = False  # not one of pytest's

    policy: ir.Policy
    tests: tuple[ir_test.Test, ...] = ()
    suite: str = ""
    """The file of the suite that the tests are written in; '' for tests of the policy's own."""
    registry: PluginRegistry = field(default_factory=lambda: IN_TREE)
    """The plugins there are."""
    objects: Mapping[str, tuple[Message, ...]] = field(default_factory=dict)
    """Test -> further objects that stand in its cluster from the start."""

    def compiled(self, params: Mapping[str, object], coverage: Coverage | None) -> Profile | Diagnostic:
        """The policy with other values of params; a finding where a plugin does not take its arguments then."""
        given = tuple(
            replace(param, default=params[param.name]) if param.name in params else param
            for param in self.policy.params
        )
        return compile_checked(replace(self.policy, params=given), coverage, self.registry)


def in_file_tests(policy: ir.Policy) -> tuple[ir_test.Test, ...]:
    """The `test` members of a policy."""
    return tuple(test for test in policy.tests if isinstance(test, ir_test.Test))


def run_tests(tested: TestedPolicy, *, steps: int = STEPS, coverage: Coverage | None = None) -> Iterator[Outcome]:
    """Run the tests of one policy, in order, each when its outcome is asked for.

    Arguments:
        steps: messages that each test may take; one that takes more fails.
        coverage: notes what the tests see of the policy.
    """
    for test in tested.tests:
        yield _Runner(tested, test, steps, coverage).outcome()


def played(tested: TestedPolicy, steps: tuple[ir_test.Step, ...]) -> Run | None:
    """What the expectations of a test would be held against after steps that expect nothing; None where they cannot be
    carried out."""
    return _Runner(tested, ir_test.Test(name="", steps=steps, span=Span(0, 0)), STEPS, None).played()


# --- before a policy serves ------------------------------------------------------------------------------


def held_to_tests(result: CompileResult, registry: PluginRegistry = IN_TREE) -> CompileResult:
    """What was compiled; without its profiles, and with a finding, where a test of it fails. Params have their
    defaults: what is set from outside is the operator's, and no reason to refuse the text."""
    failed = [] if result.failed else failed_tests(result.policies, registry)
    return replaced(result, profiles=[], diagnostics=[*result.diagnostics, *failed]) if failed else result


def failed_tests(policies: Iterable[ir.Policy], registry: PluginRegistry = IN_TREE) -> list[Diagnostic]:
    """A finding for the first failing test of each policy, at the expectation that did not hold."""
    found: list[Diagnostic] = []
    for policy in policies:
        tested = TestedPolicy(policy, in_file_tests(policy), registry=registry)
        outcome = next((one for one in run_tests(tested) if not one.passed), None)
        if outcome is not None:
            failure = outcome.failures[0]
            message = f"test `{outcome.name}` of policy `{outcome.policy}` fails: {failure.message}"
            found.append(Diagnostic(FAILED_TEST, Severity.ERROR, message, outcome.file, failure.span))
    return found


# --- what the tests do not notice ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mutation:
    """How many mutants of a policy were tried, of how many, and which of them no test noticed."""

    tried: int
    possible: int
    survivors: tuple[Mutant, ...]

    @property
    def score(self) -> float:
        """The share that was noticed, in percent."""
        return 100.0 * (self.tried - len(self.survivors)) / self.tried if self.tried else 100.0


def mutate(
    tested: Sequence[TestedPolicy],
    most: int = MOST_MUTANTS,
    told: Callable[[float], None] = lambda share: None,
) -> Mutation:
    """Run the tests of one policy against mutants of it, each until one fails. `tested`: the policy with its in-file
    tests, and again with those of suites. Tests that fail of the policy itself must be put right first. `told`: is told
    the share of the mutants that have been tried, 0 to 1."""
    found = mutants(tested[0].policy)
    chosen = found if len(found) <= most else [found[at * len(found) // most] for at in range(most)]
    tried, survivors = 0, list[Mutant]()
    for at, mutant in enumerate(chosen):
        told(at / len(chosen))
        changed = replaced(tested[0], policy=mutant.policy)
        if isinstance(changed.compiled({}, None), Diagnostic):
            continue  # a plugin refuses the arguments that are left, so there is nothing to notice
        tried += 1
        if all(outcome.passed for one in tested for outcome in run_tests(replaced(one, policy=changed.policy))):
            survivors.append(mutant)
    return Mutation(tried, len(found), tuple(survivors))


# --- one test --------------------------------------------------------------------------------------------


class _Stopped(Exception):
    """The test cannot go on."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class _Runner:
    """One test on its way."""

    def __init__(self, tested: TestedPolicy, test: ir_test.Test, steps: int, coverage: Coverage | None) -> None:
        self._tested = tested
        self._test = test
        self._steps = steps
        self._coverage = coverage
        self._params: dict[str, object] = {}
        self._uids: dict[str, str] = {}
        self._given = 0

    def outcome(self) -> Outcome:
        """Run it."""
        failures: list[Failure] = []
        try:
            self._run(failures)
        except _Stopped as stopped:
            failures.append(stopped.failure)
        finally:
            if self._coverage is not None:
                self._coverage.active = False
        tested, test = self._tested, self._test
        file = tested.suite or test.file or tested.policy.source.file
        return Outcome(tested.policy.name, test.name, file, test.span, tuple(failures))

    def played(self) -> Run | None:
        """Run it to its rest; None where it cannot go on."""
        try:
            self._run([])
            self._trial.settle()
        except (_Stopped, TrialTooLong):
            return None
        return self.run

    def _run(self, failures: list[Failure]) -> None:
        steps = self._start()
        for step in steps:
            try:
                self._do(step, failures)
            except TrialTooLong:
                message = f"the test does not come to rest within {self._steps} steps"
                raise _Stopped(Failure(message, step.span)) from None
            except ObjectError as error:
                raise _Stopped(Failure(str(error), step.span)) from None

    def _start(self) -> list[ir_test.Step]:
        """Make the trial by what is given before anything happens; what is left to do."""
        now, left, started = START, list[ir_test.Step](), False
        for step in self._test.steps:
            started = started or not isinstance(step, ir_test.GIVEN) or isinstance(step, ir_test.After)
            if isinstance(step, ir_test.GivenNow) and not started:
                now = step.now
            elif isinstance(step, ir_test.GivenParam) and not started:
                self._params[step.name] = step.value
            else:
                left.append(step)
        profile = self._compiled(self._test.span)
        self._trial = Trial([profile], now / 1e9, limit=self._steps, tried=self._tried)
        self.run = Run(self._trial, Evaluator(profile), self._uids, self._tested.policy, self._params)
        if self._coverage is not None:
            self._coverage.active = True
        self._trial.see(*self._tested.objects.get(self._test.name, ()))
        return left

    def _compiled(self, span: Span) -> Profile:
        profile = self._tested.compiled(self._params, self._coverage)
        if isinstance(profile, Diagnostic):
            raise _Stopped(Failure(profile.message, span))
        return profile

    def _tried(self, uids: Sequence[str]) -> None:
        state = self._trial.state
        for uid in uids:
            attempt = attempted(self.run.evaluator, state, uid, assumed_since(state, uids, uid))
            if attempt is None:
                continue
            self.run.last[uid] = attempt
            if self._coverage is not None:
                for rule, (passed, refused) in attempt.filtered.items():
                    self._coverage.filtered(rule, passed, refused)

    def _do(self, step: ir_test.Step, failures: list[Failure]) -> None:
        trial = self._trial
        match step:
            case ir_test.GivenNode():
                trial.see(NodeObserved(given_node(step)))
            case ir_test.GivenPod():
                self._give(step)
            case ir_test.GivenParam():
                self._params[step.name] = step.value
                profile = self._compiled(step.span)
                trial.settle()
                self.run.evaluator = Evaluator(profile)
                trial.see(ProfileReplaced(profile))
            case ir_test.GivenNow():
                if step.now / 1e9 < trial.now:
                    now = format_timestamp(round(trial.now) * 10**9)
                    raise _Stopped(Failure(f"time does not go back: it is {now} already", step.span))
                trial.advance(step.now / 1e9 - trial.now)
            case ir_test.After():
                trial.advance(step.duration / 1e9)
            case _:
                trial.settle()
                found = verdict(self.run, step)
                if found is not None:
                    failures.append(found)

    def _give(self, step: ir_test.GivenPod) -> None:
        self._given += 1
        created = format_timestamp(round(self._trial.now) * 10**9)
        pod = given_pod(step, self._given, self.run.evaluator.profile.scheduler_name, created)
        self._uids[step.name] = pod.metadata.uid
        group = given_group(step)
        if group is not None:
            self._trial.see(ObjectObserved("PodGroup", group))
        namespace = given_namespace(step, self._trial.state.view.objects_of("Namespace"))
        if namespace is not None:
            self._trial.see(ObjectObserved("Namespace", namespace))
        self._trial.see(PodObserved(pod))
