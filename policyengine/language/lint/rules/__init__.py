"""All rules, a file each, by code.

`PE30xx` what can never or always be, `31xx` scores, `32xx` the order, `33xx` gangs and permits, `34xx` other members,
`35xx` names, texts and literals, `36xx` what runs beside the rules, `37xx` cost, `38xx` tests, `39xx` the comments that
allow findings.
"""

from typing import Final

from policyengine.language.lint.rule import Rule
from policyengine.language.lint.rules.annotation_domain import annotation_domain
from policyengine.language.lint.rules.bare_quantity import bare_quantity
from policyengine.language.lint.rules.bool_literal import bool_literal
from policyengine.language.lint.rules.can_overcommit import can_overcommit
from policyengine.language.lint.rules.confusable_name import confusable_name
from policyengine.language.lint.rules.constant_condition import constant_condition
from policyengine.language.lint.rules.constant_score import constant_score
from policyengine.language.lint.rules.constant_when import constant_when
from policyengine.language.lint.rules.cut_score import cut_score
from policyengine.language.lint.rules.cycle_cost import cycle_cost
from policyengine.language.lint.rules.default_scheduler import default_scheduler
from policyengine.language.lint.rules.deprecated_label import deprecated_label
from policyengine.language.lint.rules.dominated_weight import dominated_weight
from policyengine.language.lint.rules.double_negation import double_negation
from policyengine.language.lint.rules.duplicate_require import duplicate_require
from policyengine.language.lint.rules.ends_sharing import ends_sharing
from policyengine.language.lint.rules.gang_min_unbounded import gang_min_unbounded
from policyengine.language.lint.rules.gang_of_one import gang_of_one
from policyengine.language.lint.rules.hidden_error import hidden_error
from policyengine.language.lint.rules.implied_require import implied_require
from policyengine.language.lint.rules.impossible_filter import impossible_filter
from policyengine.language.lint.rules.impossible_label import impossible_label
from policyengine.language.lint.rules.kubelet_refuses import kubelet_refuses
from policyengine.language.lint.rules.long_gang_timeout import long_gang_timeout
from policyengine.language.lint.rules.long_permit import long_permit
from policyengine.language.lint.rules.missing_else import missing_else
from policyengine.language.lint.rules.misspelt_label import misspelt_label
from policyengine.language.lint.rules.mute_else import mute_else
from policyengine.language.lint.rules.never_in_case import never_in_case
from policyengine.language.lint.rules.no_ageing import no_ageing
from policyengine.language.lint.rules.no_tests import no_tests
from policyengine.language.lint.rules.node_by_name import node_by_name
from policyengine.language.lint.rules.permit_delay_over_timeout import permit_delay_over_timeout
from policyengine.language.lint.rules.preempt_without_order import preempt_without_order
from policyengine.language.lint.rules.priority_missing import priority_missing
from policyengine.language.lint.rules.quota_unreachable_limit import quota_unreachable_limit
from policyengine.language.lint.rules.redundant_disable import redundant_disable
from policyengine.language.lint.rules.redundant_operand import redundant_operand
from policyengine.language.lint.rules.redundant_use import redundant_use
from policyengine.language.lint.rules.repeated_item import repeated_item
from policyengine.language.lint.rules.rule_name_style import rule_name_style
from policyengine.language.lint.rules.saturated_clamp import saturated_clamp
from policyengine.language.lint.rules.self_comparison import self_comparison
from policyengine.language.lint.rules.shadowed_gang import shadowed_gang
from policyengine.language.lint.rules.sliver_score import sliver_score
from policyengine.language.lint.rules.truncated_division import truncated_division
from policyengine.language.lint.rules.unanchored_pattern import unanchored_pattern
from policyengine.language.lint.rules.undocumented_param import undocumented_param
from policyengine.language.lint.rules.unknown_resource import unknown_resource
from policyengine.language.lint.rules.untested_rule import untested_rule
from policyengine.language.lint.rules.unused_import import unused_import
from policyengine.language.lint.rules.unused_name import unused_name
from policyengine.language.lint.rules.useless_key import useless_key
from policyengine.language.lint.rules.useless_on_error import useless_on_error
from policyengine.language.lint.rules.vacuous_require import vacuous_require
from policyengine.language.lint.rules.vacuous_test import vacuous_test

RULES: Final[tuple[Rule, ...]] = (
    impossible_filter,
    vacuous_require,
    implied_require,
    constant_when,
    duplicate_require,
    constant_condition,
    redundant_operand,
    self_comparison,
    double_negation,
    bool_literal,
    constant_score,
    sliver_score,
    cut_score,
    dominated_weight,
    saturated_clamp,
    truncated_division,
    no_ageing,
    useless_key,
    priority_missing,
    gang_of_one,
    gang_min_unbounded,
    long_gang_timeout,
    shadowed_gang,
    long_permit,
    permit_delay_over_timeout,
    quota_unreachable_limit,
    preempt_without_order,
    hidden_error,
    useless_on_error,
    unused_name,
    unused_import,
    confusable_name,
    rule_name_style,
    undocumented_param,
    missing_else,
    mute_else,
    unanchored_pattern,
    never_in_case,
    repeated_item,
    bare_quantity,
    misspelt_label,
    deprecated_label,
    impossible_label,
    unknown_resource,
    annotation_domain,
    node_by_name,
    default_scheduler,
    can_overcommit,
    kubelet_refuses,
    redundant_disable,
    redundant_use,
    ends_sharing,
    cycle_cost,
    no_tests,
    vacuous_test,
    untested_rule,
)
