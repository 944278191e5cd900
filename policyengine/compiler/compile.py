"""Text -> profiles: all phases on one screen.

    parse     text -> syntax tree          language.parse
    check     syntax tree -> typed tree    language.check (constants folded, cheap conjuncts first)
    params    what is given from outside   compiler.params
    lower     typed tree -> closures       compiler.lower, compiler.scalar
    rules     closures -> plugins          compiler.rule_filter, rule_score, rule_gang, queue_key
    assemble  plugins -> profile           compiler.assemble

Every finding of a file comes out of one run; profiles only where none of them is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from policyengine.compiler.assemble import Catalogue, assemble, plugin_facts, weight_of
from policyengine.compiler.frame import Scope
from policyengine.compiler.params import ParamError, param_values
from policyengine.compiler.queue_key import queue_key
from policyengine.compiler.rule_filter import RuleFilter
from policyengine.compiler.rule_gang import RuleGang
from policyengine.compiler.rule_score import RuleScore
from policyengine.compiler.signature import Decisions
from policyengine.compiler.unbound import unbound
from policyengine.framework.plugin_entry import ArgumentError
from policyengine.framework.profile import Profile, QueueSettings
from policyengine.language import ir
from policyengine.language.check import check
from policyengine.language.diagnostics import Diagnostic, Severity, Source, has_errors, in_order, register, render
from policyengine.language.format import format_source
from policyengine.language.parse import parse_file

WRONG_PARAM = "PE2901"
WRONG_ARGUMENTS = "PE2902"
register(
    {
        WRONG_PARAM: (
            "a parameter cannot have the value given",
            "A param is set from outside (`--param`, `params.yaml`) to a value of its type, within its `range` or\n"
            "among its `values`. Names of params that the policy does not have are refused.",
        ),
        WRONG_ARGUMENTS: (
            "a plugin refuses its arguments",
            "The arguments fit the plugin's schema one by one, but not together. The message is the plugin's.",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class CompileResult:
    """The profiles of a file, none where it has an error; and every finding."""

    source: Source
    profiles: list[Profile] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether an error keeps the file from being loaded."""
        return has_errors(self.diagnostics)


class PolicyError(ValueError):
    """A policy that cannot be loaded. The message shows every finding with its line."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


def checked(source: Source, catalogue: Catalogue) -> tuple[list[ir.Policy], list[Diagnostic]]:
    """The policies of a file without errors, and the findings of parse and check in order of place."""
    tree, broken = parse_file(source)
    policies, wrong = check(tree, source, plugin_facts(catalogue))
    unknown = [finding for policy in policies for finding in unbound(policy, source.file)]
    return policies, in_order([*broken, *wrong, *unknown])


def compile_text(
    text: str, catalogue: Catalogue, file: str = "<policy>", params: Mapping[str, object] | None = None
) -> CompileResult:
    """Compile the policies of a file.

    Arguments:
        text: the file's text.
        catalogue: the plugins there are.
        file: its name, for messages.
        params: values from outside by the params' names.
    """
    source = Source(file, text)
    policies, findings = checked(source, catalogue)
    if has_errors(findings):
        return CompileResult(source, [], findings)
    canonical, _ = format_source(source)
    profiles: list[Profile] = []
    for policy in policies:
        built = _compiled(policy, source, canonical, params or {}, catalogue)
        if isinstance(built, Diagnostic):
            findings.append(built)
        else:
            profiles.append(built)
    return CompileResult(source, [] if has_errors(findings) else profiles, in_order(findings))


def compile_policy(text: str, catalogue: Catalogue, params: Mapping[str, object] | None = None) -> Profile:
    """Compile the one policy of a text.

    Raises:
        PolicyError: it has errors, or does not hold exactly one policy.
    """
    result = compile_text(text, catalogue, params=params)
    if result.failed:
        raise PolicyError(render(result.diagnostics, result.source), tuple(result.diagnostics))
    if len(result.profiles) != 1:
        raise PolicyError(f"the text holds {len(result.profiles)} policies; one is wanted")
    return result.profiles[0]


def _compiled(
    policy: ir.Policy, source: Source, canonical: str, given: Mapping[str, object], catalogue: Catalogue
) -> Profile | Diagnostic:
    try:
        params = param_values(policy.params, given)
        return _profile(policy, source.text, policy_hash(canonical, policy.name, params), params, catalogue)
    except ParamError as error:
        return Diagnostic(WRONG_PARAM, Severity.ERROR, str(error), source.file, policy.span)
    except ArgumentError as error:
        return Diagnostic(WRONG_ARGUMENTS, Severity.ERROR, str(error), source.file, policy.span)


def policy_hash(canonical: str, name: str, params: Mapping[str, object]) -> str:
    """SHA-256, in hex, of the canonical text, the policy's name in it and the values of its params."""
    values = {key: str(value) for key, value in sorted(params.items())}
    return sha256(json.dumps([canonical, name, values], ensure_ascii=False).encode()).hexdigest()


def _profile(policy: ir.Policy, text: str, digest: str, params: Mapping[str, object], catalogue: Catalogue) -> Profile:
    lets = {let.name: let for let in policy.lets}
    scope = Scope(lets, params, {"name": policy.name, "hash": digest})
    decisions = Decisions()
    base = assemble(policy, params, catalogue)
    rules = tuple(RuleFilter(rule, scope, text, decisions) for rule in policy.filters)
    scores = tuple((RuleScore(rule, scope, decisions), weight_of(rule.weight, params)) for rule in policy.scores)
    queue = policy.queue
    return Profile(
        name=policy.name,
        scheduler_name=policy.scheduler,
        policy_hash=digest,
        share=policy.share,
        pre_enqueue=base.pre_enqueue,
        filters=(*base.filters, *rules),
        scores=(*base.scores, *scores),
        post_filters=base.post_filters,
        reserve=base.reserve,
        pre_bind=base.pre_bind,
        gangs=tuple(RuleGang(rule, scope, decisions) for rule in policy.gangs),
        queue_key=queue_key(queue.order, scope),
        queue=QueueSettings(queue.initial_backoff, queue.max_backoff, queue.flush_after),
    )
