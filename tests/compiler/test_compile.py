"""Text to profiles: bases, plugins, params, hashes, and findings of every phase."""

from __future__ import annotations

import pytest

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.plugin_entry import PluginEntry
from policyengine.language.diagnostics import Source
from policyengine.plugins.registry import IN_TREE, default_profile
from policyengine.policy_compiler import PolicyError, compile_files, compile_policy, compile_text
from tests.builders import make_pod


def names(text: str) -> tuple[list[str], dict[str, int]]:
    profile = compile_policy(f'policy "t" {{ {text} }}')
    return [plugin.name for plugin in profile.filters], {plugin.name: weight for plugin, weight in profile.scores}


FILTERS = [plugin.name for plugin in default_profile().filters]
SCORES = {plugin.name: weight for plugin, weight in default_profile().scores}


def test_the_base_is_kube_schedulers_own_profile() -> None:
    assert names("") == (FILTERS, SCORES)
    assert names("base kubernetes") == (FILTERS, SCORES)


def test_a_base_of_filters_has_no_score() -> None:
    assert names("base filters") == (FILTERS, {})


def test_an_empty_base_is_empty() -> None:
    assert names("base none") == ([], {})
    assert compile_policy('policy "t" { base none }').pre_enqueue == ()


def test_rules_follow_the_plugins_in_the_order_written() -> None:
    found, _ = names('filter "b" { require true } filter "a" { require node.ready }')
    assert found == [*FILTERS, "b", "a"]


def test_use_sets_the_weight_and_disable_takes_out() -> None:
    found, scores = names("use TaintToleration weight 7 disable ImageLocality disable NodeName")
    assert scores == {
        name: 7 if name == "TaintToleration" else weight for name, weight in SCORES.items() if name != "ImageLocality"
    }
    assert found == [name for name in FILTERS if name != "NodeName"]


def test_use_adds_to_an_empty_base() -> None:
    assert names("base none use NodeResourcesFit") == (["NodeResourcesFit"], {"NodeResourcesFit": 1})


def test_use_gives_a_base_of_filters_a_score() -> None:
    assert names("base filters use TaintToleration")[1] == {
        "TaintToleration": IN_TREE["TaintToleration"].default_weight
    }


def test_settings_reach_the_profile() -> None:
    profile = compile_policy(
        'policy "t" { scheduler "mine" share 3 queue { order by pod.priority backoff 2s .. 20s flush 1min } }'
    )
    assert (profile.name, profile.scheduler_name, profile.share) == ("t", "mine", 3)
    assert (profile.queue.initial_backoff, profile.queue.max_backoff, profile.queue.flush_after) == (2.0, 20.0, 60.0)


PARAM = 'policy "t" { param least: memory = 2Gi range [1Gi, 4Gi] filter "f" { require node.free.memory >= least } }'


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"least": "8Gi"}, "outside the range"),
        ({"least": "much"}, "`much` is not a value of type `memory`"),
        ({"least": True}, "`true` is not a value of type `memory`"),
        ({"leest": "2Gi"}, "`leest` is no parameter of the policy; did you mean `least`?"),
        ({"most": "2Gi"}, "`most` is no parameter of the policy; it has `least`"),
    ],
)
def test_a_param_that_cannot_be_so_is_a_finding(given: dict[str, object], message: str) -> None:
    result = compile_text(PARAM, params=given)
    assert result.profiles == []
    assert [finding.code for finding in result.diagnostics] == ["PE2901"]
    assert message in result.diagnostics[0].message


def test_independent_mistakes_are_all_found_in_one_run() -> None:
    text = 'policy "t" {\n let a = 1 + "x"\n filter "f" { require node.fre.cpu > 1 }\n score "s" weight 1 = = 2\n}'
    result = compile_text(text, "t.policy")
    assert result.failed
    assert {result.sources[0].line_column(finding.span.start)[0] for finding in result.diagnostics} == {2, 3, 4}


def test_one_broken_policy_keeps_its_file_from_being_loaded() -> None:
    result = compile_text('policy "a" { scheduler "a" } policy "b" { scheduler "b" let x = y }')
    assert result.failed
    assert result.profiles == []


def test_the_python_interface_raises_one_error_with_everything_in_it() -> None:
    with pytest.raises(PolicyError, match=r"(?s)-->.*\^") as raised:
        compile_policy('policy "t" { let a = b }')
    assert raised.value.diagnostics
    with pytest.raises(PolicyError, match="2 policies"):
        compile_policy('policy "a" { scheduler "a" } policy "b" { scheduler "b" }')
    with pytest.raises(PolicyError, match="holds no `policy`"):
        compile_policy("// nothing")


def test_plugins_refuse_arguments_that_do_not_fit() -> None:
    result = compile_text('policy "t" { use NodeResourcesFit { strategy: "NoSuch" } }')
    assert [finding.code for finding in result.diagnostics] == ["PE2004"]
    result = compile_text('policy "t" { use NodeResourcesFit { strategy: "RequestedToCapacityRatio" } }')
    assert [finding.code for finding in result.diagnostics] == ["PE2902"]


@pytest.mark.parametrize(
    "member",
    [
        'gang "g" { key: string(pod.attempts) min: 1 timeout: 1min }',
        'let since = pod.queuedAt gang "g" when since < pod.createdAt { key: "" min: 1 timeout: 1min }',
    ],
)
def test_what_has_no_value_in_its_place_is_found_before_the_policy_is_loaded(member: str) -> None:
    assert [finding.code for finding in compile_text(f'policy "t" {{ {member} }}').diagnostics] == ["PE2903"]


def test_a_queue_key_that_counts_attempts_is_given_them() -> None:
    profile = compile_policy('policy "t" { let tries = pod.attempts queue { order by tries } }')
    assert profile.counts_attempts
    assert profile.queue_key(make_pod().info(), 1.0, 3) > profile.queue_key(make_pod().info(), 9.0, 2)
    assert not compile_policy('policy "t" { }').counts_attempts


class Oldest:
    """Orders the queue by the pods' names."""

    name = "Oldest"

    def events_to_register(self) -> tuple[()]:
        return ()

    def queue_key(self, pod: PodInfo, queued_at: float) -> tuple[str, float]:
        return (pod.name, queued_at)


SORTING = {**IN_TREE, "Oldest": PluginEntry("Oldest", lambda _: Oldest(), order=99, in_base=False)}


def test_a_plugin_may_order_the_queue() -> None:
    [profile] = compile_files([Source("t", 'policy "t" { use Oldest }')], None, SORTING).profiles
    assert profile.queue_key(make_pod("a").info(), 9.0) < profile.queue_key(make_pod("b").info(), 1.0)


def test_two_orders_of_one_queue_are_told_of() -> None:
    result = compile_files([Source("t", 'policy "t" { use Oldest queue { order by pod.qos } }')], None, SORTING)
    assert [finding.message for finding in result.diagnostics] == [
        "`Oldest` and `order by` each order the queue: keep one"
    ]
