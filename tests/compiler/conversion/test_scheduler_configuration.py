"""A converted configuration decides with the plugins, weights and arguments that kube-scheduler would use.

What kube-scheduler would use is read anew here, from the rules of its documentation; and, where the real binary is,
from the configuration that it writes itself.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.compiler.conversion.kube_scheduler import kube_scheduler_configuration
from policyengine.compiler.conversion.reading import ConversionError
from policyengine.compiler.conversion.scheduler_configuration import EXTENSION_POINTS, read_configuration
from policyengine.compiler.conversion.wanted import policy_text
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_policy, compile_text

API = "kubescheduler.config.k8s.io/v1"
FILTERING = [name for name, entry in IN_TREE.items() if entry.filters]
SCORING = {name: entry.default_weight for name, entry in IN_TREE.items() if entry.default_weight}


def configuration(**profile: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}


def converted(value: object) -> Profile:
    [wanted] = read_configuration(value, IN_TREE)
    return compile_policy(policy_text(wanted, IN_TREE))


def filters(profile: Profile) -> list[str]:
    return [plugin.name for plugin in profile.filters]


def scores(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.scores}


def expected(plugins: dict[str, Any]) -> tuple[list[str], dict[str, int]]:
    """kube-scheduler's documentation, as plainly as it can be written: filters, and scores with weights."""

    def names(point: str, which: str) -> dict[str, int | None]:
        return {one["name"]: one.get("weight") for one in plugins.get(point, {}).get(which, [])}

    everything: dict[str, int | None] = dict.fromkeys(IN_TREE) | SCORING
    if "*" in names("multiPoint", "disabled"):
        everything = {}
    for name in names("multiPoint", "disabled"):
        everything.pop(name, None)
    everything |= names("multiPoint", "enabled")

    def at(point: str, able: Any) -> dict[str, int | None]:
        there = (
            {} if "*" in names(point, "disabled") else {name: everything[name] for name in everything if name in able}
        )
        for name in names(point, "disabled"):
            there.pop(name, None)
        return there | names(point, "enabled")

    scored = {name: weight or 1 for name, weight in at("score", SCORING).items()}
    filtered = at("filter", FILTERING)
    # What scores also filters here; the note says so.
    filtering = [name for name in FILTERING if name in filtered or name in scored]
    # VolumeBinding scores only where it is given a shape.
    return filtering, {name: weight for name, weight in scored.items() if name != "VolumeBinding"}


def plugin_lists(able: list[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(
        st.builds(
            lambda name, weight: {"name": name} | ({"weight": weight} if weight else {}),
            st.sampled_from(able),
            st.integers(0, 9),
        ),
        max_size=3,
        unique_by=lambda one: one["name"],
    )


def sets(able: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    off = st.lists(st.sampled_from([*able, "*"]), max_size=3, unique=True)
    return st.fixed_dictionaries(
        {"enabled": plugin_lists(able), "disabled": off.map(lambda names: [{"name": name} for name in names])}
    )


sections = st.fixed_dictionaries(
    {"multiPoint": sets(list(IN_TREE)), "filter": sets(FILTERING), "score": sets(list(SCORING))}
)


@settings(max_examples=150)
@given(plugins=sections)
def test_the_policy_has_the_plugins_and_weights_that_the_documentation_says(plugins: dict[str, Any]) -> None:
    profile = converted(configuration(plugins=plugins))
    assert (filters(profile), scores(profile)) == expected(plugins)


@settings(max_examples=60)
@given(plugins=sections)
def test_a_policy_goes_to_kube_scheduler_and_back(plugins: dict[str, Any]) -> None:
    [wanted] = read_configuration(configuration(plugins=plugins), IN_TREE)
    once = compile_text(policy_text(wanted, IN_TREE))
    back = kube_scheduler_configuration(once.policies, IN_TREE, "http://127.0.0.1:1")
    again = converted(back)
    assert (filters(again), scores(again)) == (filters(once.profiles[0]), scores(once.profiles[0]))


def test_the_default_configuration_is_an_empty_policy() -> None:
    [wanted] = read_configuration({"apiVersion": API, "kind": "KubeSchedulerConfiguration"}, IN_TREE)
    assert policy_text(wanted, IN_TREE) == 'policy "default-scheduler" {\n  scheduler "default-scheduler"\n}\n'


def test_arguments_are_carried_over_and_defaults_are_not() -> None:
    fit = {
        "name": "NodeResourcesFit",
        "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]}},
    }
    affinity = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 1}}
    [wanted] = read_configuration(configuration(pluginConfig=[fit, affinity]), IN_TREE)
    assert wanted.plugins["NodeResourcesFit"].arguments == fit["args"]
    assert wanted.plugins["InterPodAffinity"].arguments == {}


@pytest.mark.parametrize(("point", "name"), [("multiPoint", "GangScheduling"), ("score", "PodGroupPodsCount")])
def test_what_the_gates_of_pod_groups_add_becomes_a_gang_rule(point: str, name: str) -> None:
    [wanted] = read_configuration(configuration(plugins={point: {"enabled": [{"name": name}]}}), IN_TREE)
    text = policy_text(wanted, IN_TREE)
    assert "// note" not in text
    profile = compile_policy(text)
    assert [gang.name for gang in profile.gangs] == ["pod-group"]
    assert filters(profile)[-2:] == ["pod-group-exists", "min-resources"]


def test_what_has_no_equivalent_is_noted() -> None:
    value = configuration(plugins={"multiPoint": {"enabled": [{"name": "QOSSort"}]}}, percentageOfNodesToScore=30)
    [wanted] = read_configuration(value | {"extenders": [{"urlPrefix": "http://x"}]}, IN_TREE)
    text = policy_text(wanted, IN_TREE)
    assert "// note: `QOSSort` is no plugin of kube-scheduler's own: write `queue {" in text
    assert "// note: every node is looked at" in text and "// note: extenders are set in" in text


@pytest.mark.parametrize(
    ("point", "off", "expected"),
    [
        ("postFilter", "DefaultPreemption", ["  disable DefaultPreemption"]),
        (
            "postFilter",
            "*",
            ["  disable DefaultPreemption", "// note: `DynamicResources` cannot do without its postFilter; it is kept"],
        ),
        ("preEnqueue", "SchedulingGates", ["  disable SchedulingGates"]),
        (
            "preEnqueue",
            "DefaultPreemption",
            ["// note: `DefaultPreemption` cannot do without its preEnqueue; it is kept"],
        ),
        (
            "reserve",
            "*",
            [
                f"// note: `{name}` cannot do without its reserve; it is kept"
                for name in ("VolumeBinding", "DynamicResources")
            ],
        ),
        ("preBind", "VolumeBinding", ["// note: `VolumeBinding` cannot do without its preBind; it is kept"]),
        ("bind", "DefaultBinder", ["// note: `DefaultBinder` is disabled; a pod is bound as it would do it"]),
        ("queueSort", "*", ["// note: `queueSort` is empty; the order by priority is kept"]),
        ("preFilter", "NodeName", []),
        ("permit", "*", []),
        ("postBind", "*", []),
    ],
)
def test_what_is_disabled_at_one_extension_point_is_disabled_or_noted(
    point: str, off: str, expected: list[str]
) -> None:
    [wanted] = read_configuration(configuration(plugins={point: {"disabled": [{"name": off}]}}), IN_TREE)
    [plain] = read_configuration(configuration(), IN_TREE)
    frame = {'policy "default-scheduler" {', "}"}
    said, before = (set(policy_text(one, IN_TREE).splitlines()) for one in (wanted, plain))
    assert said - before - frame == set(expected)


def test_the_extension_points_of_every_plugin_are_known() -> None:
    assert {*IN_TREE, "DefaultBinder"} == set(EXTENSION_POINTS)
    for name, entry in IN_TREE.items():
        assert ("filter" in EXTENSION_POINTS[name]) == entry.filters
        assert ("score" in EXTENSION_POINTS[name]) == entry.scores


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "`the document` is not a mapping"),
        ({"kind": "KubeSchedulerConfiguration"}, "`apiVersion` is missing"),
        ({"apiVersion": "x/v2"}, "`apiVersion` ends in `v2`"),
        (configuration() | {"profiles": {}}, "`profiles` is not a list"),
        (configuration() | {"profiles": [{}, {}]}, "two profiles have one `schedulerName`"),
        (configuration(schedulerName=3), "`profiles[0].schedulerName` is not a name"),
        (configuration(plugins=[]), "`profiles[0].plugins` is not a mapping"),
        (configuration(plugins={"score": {"enabled": [{}]}}), "`profiles[0].plugins.score.enabled[0].name` is missing"),
        (
            configuration(plugins={"score": {"enabled": [{"name": "ImageLocality", "weight": "3"}]}}),
            "`profiles[0].plugins.score.enabled[0].weight` is not an int from 0 to 1000000",
        ),
        (
            configuration(plugins={"score": {"enabled": [{"name": "ImageLocality"}, {"name": "ImageLocality"}]}}),
            "`profiles[0].plugins.score.enabled[1]`: `ImageLocality` is enabled twice",
        ),
        (
            configuration(pluginConfig=[{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Best"}}}]),
            "`profiles[0].pluginConfig[0].args`: `NodeResourcesFit`: `scoringStrategy.type`",
        ),
        (
            configuration() | {"podInitialBackoffSeconds": 20},
            "`podInitialBackoffSeconds` 20 is above `podMaxBackoffSeconds` 10",
        ),
        (configuration() | {"podMaxBackoffSeconds": -1}, "`podMaxBackoffSeconds` is not a number from 0 to 9000000000"),
    ],
)
def test_a_wrong_configuration_is_told_where(value: object, message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        read_configuration(value, IN_TREE)
    assert message in str(caught.value)


def test_the_real_kube_scheduler_reads_ours_and_we_read_its(tmp_path: Path) -> None:
    binary = Path(os.environ.get("KUBEBUILDER_ASSETS", "/nowhere")) / "kube-scheduler"
    if not binary.is_file():
        pytest.skip("$KUBEBUILDER_ASSETS holds no kube-scheduler")
    text = """policy "all" {
      use NodeResourcesFit weight 4 { strategy: "MostAllocated" }
      use TaintToleration weight 0
      disable ImageLocality
      queue { backoff 2s .. 20s }
      filter "a" { require node.name != "" }
      score "b" weight 7 = 3
    }"""
    result = compile_text(text)
    ours = kube_scheduler_configuration(result.policies, IN_TREE, "http://127.0.0.1:8888")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],"
        ' clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: u, user: {}}]}'
    )
    given_file, written = tmp_path / "ours.yaml", tmp_path / "written.yaml"
    given_file.write_text(yaml.safe_dump(ours | {"clientConnection": {"kubeconfig": str(kubeconfig)}}))
    command = [binary, "--config", given_file, "--write-config-to", written, "--secure-port=0"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    effective = yaml.safe_load(written.read_text())
    [extender] = effective["extenders"]
    assert extender["urlPrefix"] == "http://127.0.0.1:8888/all" and extender["ignorable"] and extender["weight"] == 7
    [wanted] = read_configuration(effective, IN_TREE)
    [straight] = read_configuration(ours, IN_TREE)
    # It fills the strategy's resources in.
    wanted.plugins["NodeResourcesFit"].arguments["scoringStrategy"].pop("resources")
    assert wanted.plugins == straight.plugins and wanted.backoff == (2.0, 20.0)
    in_tree = [name for name in filters(result.profiles[0]) if name in IN_TREE]
    assert filters(compile_policy(policy_text(wanted, IN_TREE))) == in_tree
