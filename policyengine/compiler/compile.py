"""Text -> profiles: all phases on one screen.

    parse     text -> syntax tree          language.parse
    check     syntax tree -> typed tree    language.check (constants folded, cheap conjuncts first)
    params    what is given from outside   compiler.params
    lower     typed tree -> closures       compiler.lower
    rules     closures -> plugins          compiler.rules
    assemble  plugins -> profile           compiler.assemble

Files that are loaded together (`import`, `overlay`) are compiled together. Every finding comes out of one run;
profiles only where none of them is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from policyengine.compiler import front
from policyengine.compiler.assemble import PluginRegistry, assemble, extending, plugin_facts, score_weights
from policyengine.compiler.coverage import Coverage
from policyengine.compiler.front import WRONG_ARGUMENTS, WRONG_PARAM
from policyengine.compiler.lower.lets import Lets
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.lower.vector import column_closure
from policyengine.compiler.params import param_values, wrong_values
from policyengine.compiler.policy_hash import fingerprints, policy_hash
from policyengine.compiler.rules.chosen_node import PlacedText, RuleLog, RulePermit
from policyengine.compiler.rules.filter import rule_filter
from policyengine.compiler.rules.node_rule import Decisions
from policyengine.compiler.rules.pod_rules import RuleGang, counts_attempts, fair_share, preempt_rule, queue_key
from policyengine.compiler.rules.quota import quotas
from policyengine.compiler.rules.requeue_events import histories_read, kinds_read, reads_queue
from policyengine.compiler.rules.score import rule_score
from policyengine.compiler.tuning import PolicyTuning
from policyengine.framework.placed import AnnotationRule, BindPlugin, LoggingPlugin, PostBindPlugin
from policyengine.framework.plugin import FilterPlugin, Plugin, PreEnqueuePlugin, QueueSortPlugin, ScorePlugin, extends
from policyengine.framework.plugin_entry import ArgumentError
from policyengine.framework.post_filter import PostFilterPlugin
from policyengine.framework.profile import LoadedFrom, Profile, QueueKey, QueueSettings
from policyengine.framework.reservation import PermitPlugin, PreBindPlugin, ReservePlugin
from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic, Severity, Source, has_errors, in_order


@dataclass(frozen=True, slots=True)
class CompileResult:
    """The profiles of files loaded together, none where one has an error; and every finding."""

    sources: tuple[Source, ...]
    profiles: list[Profile] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    wrong_params: Mapping[str, str] = field(default_factory=dict)
    """Why params cannot have the values given, by their names; findings too."""
    policies: tuple[ir.Policy, ...] = ()
    """What the profiles were made from; their tests are run before they serve (`trials.policy_test`)."""

    @property
    def failed(self) -> bool:
        """Whether an error keeps the files from being loaded."""
        return has_errors(self.diagnostics)

    def source_of(self, finding: Diagnostic) -> Source:
        """The file that a finding is in."""
        return next(source for source in self.sources if source.file == finding.file)


class PolicyError(ValueError):
    """A policy that cannot be loaded. The message shows every finding with its line."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


def compile_files(
    sources: Sequence[Source], registry: PluginRegistry, params: Mapping[str, object] | None = None
) -> CompileResult:
    """Compile the policies of files that are loaded together.

    Arguments:
        sources: the files; their names differ.
        registry: the plugins there are.
        params: values from outside by the params' full names; each policy takes those it has.
    """
    policies, findings = front.checked(sources, plugin_facts(registry))[1:3]
    if has_errors(findings) or not policies:
        return CompileResult(tuple(sources), [], findings)
    wrong = wrong_values([param for policy in policies for param in policy.params], params or {})
    findings += [_wrong_param(policies, name, message) for name, message in wrong.items()]
    if wrong:
        return CompileResult(tuple(sources), [], in_order(findings), wrong)
    built = [compile_checked(policy, registry, params=params) for policy in policies]
    findings += [one for one in built if isinstance(one, Diagnostic)]
    loaded = LoadedFrom({source.file: source.text for source in sources}, params or {})
    profiles = (
        [] if has_errors(findings) else [replace(one, loaded_from=loaded) for one in built if isinstance(one, Profile)]
    )
    return CompileResult(tuple(sources), profiles, in_order(findings), policies=tuple(policies))


def _wrong_param(policies: Sequence[ir.Policy], name: str, message: str) -> Diagnostic:
    """The finding, at the policy that has the param, else at the first."""
    having = (policy for policy in policies if any(param.name == name for param in policy.params))
    policy = next(having, policies[0])
    return Diagnostic(WRONG_PARAM, Severity.ERROR, message, policy.source.file, policy.span)


def compile_checked(
    policy: ir.Policy,
    registry: PluginRegistry,
    watch: Coverage | None = None,
    params: Mapping[str, object] | None = None,
) -> Profile | Diagnostic:
    """Compile one checked policy; a finding where a plugin refuses its arguments.

    Arguments:
        watch: is told what the expressions evaluate to.
        params: values from outside; the others have their defaults.
    """
    try:
        return _profile(policy, param_values(policy.params, params or {}), registry, watch)
    except ArgumentError as error:
        return Diagnostic(WRONG_ARGUMENTS, Severity.ERROR, str(error), policy.source.file, policy.span)


def _profile(
    policy: ir.Policy, params: Mapping[str, object], registry: PluginRegistry, watch: Coverage | None
) -> Profile:
    digest, text = policy_hash(policy, params), policy.source.text
    lets = Lets({let.name: let for let in policy.lets})
    scope = Scope(column_closure, lets, params, {"name": policy.name, "hash": digest}, watch=watch)
    decisions = Decisions(reads_queue(policy, scope))
    base = assemble(policy, params, registry)
    plugins = [plugin for plugin, _ in base]
    filters = extending((plugin for plugin, chosen in base if chosen.entry.filters), FilterPlugin)
    scored = [(plugin, chosen.weight) for plugin, chosen in base if chosen.weight and extends(plugin, ScorePlugin)]
    rules = tuple(rule_filter(rule, scope, decisions) for rule in policy.filters)
    weights = score_weights(policy.scores, params, sum(weight for _, weight in scored))
    scores = zip([rule_score(rule, scope, decisions) for rule in policy.scores], weights, strict=True)
    queue, preempt = policy.queue, policy.preempt
    return Profile(
        name=policy.name,
        scheduler_name=policy.scheduler,
        policy_hash=digest,
        share=policy.share,
        pre_enqueue=extending(plugins, PreEnqueuePlugin),
        quotas=quotas(policy.quotas, scope, decisions),
        filters=(*filters, *rules),
        scores=(*scored, *scores),
        tiers=frozenset(rule.name for rule in policy.scores if rule.weight is None),
        post_filters=extending(plugins, PostFilterPlugin),
        preempt=None if preempt is None else preempt_rule(preempt, scope, decisions),
        reserve=extending(plugins, ReservePlugin),
        permit=(
            *extending(plugins, PermitPlugin),
            *(RulePermit(rule, scope, decisions, text) for rule in policy.permits),
        ),
        pre_bind=extending(plugins, PreBindPlugin),
        bind=extending(plugins, BindPlugin),
        post_bind=extending(plugins, PostBindPlugin),
        logs=(
            *(line for plugin in extending(plugins, LoggingPlugin) for line in plugin.logs),
            *(RuleLog(rule, scope, decisions) for rule in policy.logs),
        ),
        annotations=tuple(
            AnnotationRule(rule.key, PlacedText(rule.value, scope, decisions).of) for rule in policy.annotations
        ),
        gangs=tuple(RuleGang(rule, scope, decisions) for rule in policy.gangs),
        queue_key=_order(queue, plugins, scope, decisions),
        counts_attempts=counts_attempts(queue.order, scope),
        fair=fair_share(queue, scope, decisions),
        queue=QueueSettings(queue.initial_backoff, queue.max_backoff, queue.flush_after),
        kinds=kinds_read(policy, scope),
        histories=histories_read(policy, scope),
        fingerprints=fingerprints(policy, params, digest),
        tuning=PolicyTuning(policy, params, lambda values: _profile(policy, values, registry, None)),
    )


def _order(queue: ir.Queue, plugins: Sequence[Plugin], scope: Scope, decisions: Decisions) -> QueueKey:
    """The key by which the queue is ordered: of the one that says so, be it a plugin or `order by`."""
    sorts = extending(plugins, QueueSortPlugin)
    says_so = any(not _is_priority(key) for key in queue.order)
    if len(sorts) + says_so > 1:
        names = " and ".join([*(f"`{plugin.name}`" for plugin in sorts), *["`order by`"] * says_so])
        raise ArgumentError(f"{names} each order the queue: keep one")
    return sorts[0].queue_key if sorts else queue_key(queue.order, scope, decisions)


def _is_priority(key: ir.OrderKey) -> bool:
    """Whether it is kube-scheduler's order, which stands where none is written."""
    return key.descending and isinstance(key.value, ir.Field) and key.value.path == ("pod", "priority")
