"""`policyengine convert` as a user meets it."""

import json
from dataclasses import replace
from pathlib import Path

import yaml

from policyengine.cluster.objects import decode
from policyengine.cluster.workload_objects import ConfigMap, SchedulingPolicy
from policyengine.compiler.conversion.kube_scheduler import kube_scheduler_configuration
from policyengine.kube.policies.compiling import compiled
from policyengine.kube.policies.config_map import ConfigMapSource
from policyengine.kube.policies.scheduling_policy import SchedulingPolicySource
from policyengine.language.diagnostics import Source
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_files
from tests.commands.process import policyengine
from tests.docs.even_nodes import EVEN_NODES

CONFIGURATION = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packed
  plugins: {score: {disabled: [{name: ImageLocality}]}}
  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]
"""


def test_what_is_written_lints_and_goes_back(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIGURATION)
    ended = policyengine("convert", tmp_path / "c.yaml")
    assert ended.code == 0 and 'policy "packed" {' in ended.out and "disable ImageLocality" in ended.out
    (tmp_path / "p.policy").write_text(ended.out)
    assert policyengine("lint", tmp_path / "p.policy").code == 0
    back = policyengine("convert", "--to", "kube-scheduler", tmp_path / "p.policy")
    assert back.code == 0 and "type: MostAllocated" in back.out and "extenders" not in back.out


def test_rules_become_an_extender(tmp_path: Path) -> None:
    (tmp_path / "p.policy").write_text(
        'policy "p" { gang "g" { key: pod.name min: 1 timeout: 1s } score "s" weight 2 = 1 }'
    )
    ended = policyengine("convert", "--to", "kube-scheduler", "--url", "https://e:1/", tmp_path / "p.policy")
    assert ended.code == 0
    assert "# note: policy `p`: `gang` have no effect behind kube-scheduler" in ended.out
    assert "urlPrefix: https://e:1/p" in ended.out and "enableHTTPS: true" in ended.out and "weight: 2" in ended.out


def test_a_plugin_of_a_package_is_asked_in_the_extender_and_not_named_to_kube_scheduler() -> None:
    with_even = {**IN_TREE, EVEN_NODES.name: replace(EVEN_NODES, in_base=False)}
    text = 'policy "p" { use EvenNodes weight 3 { allowed: [0] } score "s" weight 2 = 1 }'
    policies = compile_files([Source("p", text)], None, with_even).policies
    written = kube_scheduler_configuration(policies, with_even, "http://127.0.0.1:8888")
    assert "EvenNodes" not in json.dumps(written["profiles"])
    [extender] = written["extenders"]
    assert extender["filterVerb"] == "filter" and extender["weight"] == 5


def test_params_are_given_and_a_name_is_written_for_a_url(tmp_path: Path) -> None:
    (tmp_path / "p.policy").write_text('policy "a b" { param w: int = 3 range [1, 9] score "s" weight w = 1 }')
    to = ("convert", "--to", "kube-scheduler", tmp_path / "p.policy")
    ended = policyengine(*to, "--param", "w=5")
    assert ended.code == 0 and "/a%20b" in ended.out and "weight: 5" in ended.out
    assert policyengine(*to, "--param", "w=99").code == 2


def test_a_file_that_is_none_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    assert "cannot read" in policyengine("convert", tmp_path / "nothing").err
    for text, message in (
        ("{", "neither YAML nor JSON on line 1: expected the node content"),
        ("a: 1\nb: [\n", "neither YAML nor JSON on line 3: "),
        ("[" * 5000, "nested too deeply"),
        ("[1]", "is not a mapping"),
        ("kind: Pod", "`kind` is `Pod`"),
    ):
        (tmp_path / "c.yaml").write_text(text)
        ended = policyengine("convert", tmp_path / "c.yaml")
        assert ended.code == 2 and message in ended.err


def test_extenders_of_either_form_become_the_configuration_of_run_with_all_they_say(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        CONFIGURATION
        + "extenders:\n- {urlPrefix: http://a/b, filterVerb: f, preemptVerb: p, httpTimeout: 2s, tlsConfig: null,"
        " ignorable: true, managedResources: [{name: x.io/gpu, ignoredByScheduler: true}]}\n"
    )
    (tmp_path / "p.json").write_text(
        '{"kind": "Policy", "apiVersion": "v1", "extenders": [{"urlPrefix": "http://a/b", "prioritizeVerb": "s",'
        ' "weight": 3, "enableHttps": true, "httpTimeout": 100000000, "nodeCacheCapable": true}]}'
    )
    given = {"urlPrefix": "http://a/b", "filterVerb": "f", "preemptVerb": "p", "httpTimeout": "2s", "ignorable": True}
    given["managedResources"] = [{"name": "x.io/gpu", "ignoredByScheduler": True}]
    old = {"urlPrefix": "http://a/b", "prioritizeVerb": "s", "weight": 3, "enableHTTPS": True, "nodeCacheCapable": True}
    for name, wanted in (("c.yaml", given), ("p.json", old | {"httpTimeout": "0.1s"})):
        ended = policyengine("convert", "--to", "run", tmp_path / name)
        assert ended.code == 0, ended.err
        assert yaml.safe_load(ended.out)["extenders"] == [wanted]
        (tmp_path / "run.yaml").write_text(ended.out)
        assert policyengine("config", "--config", tmp_path / "run.yaml").code == 0
    (tmp_path / "c.yaml").write_text("extenders: [{urlPrefix: nowhere}]")
    ended = policyengine("convert", "--to", "run", tmp_path / "c.yaml")
    assert ended.code == 2 and "`extenders.0.urlPrefix`" in ended.err


CANARY = """kind: ConfigMap
metadata:
  name: next
  namespace: policies
  labels: {policyengine.io/policy: "true"}
  annotations:
    policyengine.io/mode: canary
    policyengine.io/canary-percent: "5"
    policyengine.io/canary-namespaces: stage in (test, trial), !critical
    policyengine.io/budget: "{unschedulable: 5%, window: 10m, least: 7}"
data:
  a.policy: |
    policy "a" {
      param most: int = 1
    }
  params.yaml: "most: 3"
"""


def test_a_config_map_becomes_a_scheduling_policy_that_means_the_same(tmp_path: Path) -> None:
    (tmp_path / "cm.yaml").write_text(CANARY)
    ended = policyengine("convert", "--to", "scheduling-policy", tmp_path / "cm.yaml")
    assert ended.code == 0 and "    a.policy: |\n      policy" in ended.out
    item = yaml.safe_load(ended.out)
    before = ConfigMapSource(decode(ConfigMap, yaml.safe_load(CANARY)))
    after = SchedulingPolicySource(decode(SchedulingPolicy, item))
    assert after.settings == before.settings and after.settings is not None
    assert compiled(after.texts).profiles[0].policy_hash == compiled(before.texts).profiles[0].policy_hash
    assert after.key == ("policies", "next", "SchedulingPolicy")
    (tmp_path / "sp.yaml").write_text(ended.out)
    assert policyengine("lint", tmp_path / "sp.yaml").code == policyengine("lint", tmp_path / "cm.yaml").code
    (tmp_path / "p.policy").write_text('policy "p" {}\n')
    item = yaml.safe_load(policyengine("convert", "--to", "scheduling-policy", tmp_path / "p.policy").out)
    assert item["spec"] == {"policies": {"p.policy": 'policy "p" {}\n'}} and item["metadata"]["name"] == "p"
    (tmp_path / "cm.yaml").write_text(CANARY.replace("5%", "x%"))
    ended = policyengine("convert", "--to", "scheduling-policy", tmp_path / "cm.yaml")
    assert ended.code == 2 and "`x%` is no percentage" in ended.err


def test_several_files_are_converted_together_both_ways(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIGURATION)
    (tmp_path / "p.json").write_text('{"kind": "Policy", "apiVersion": "v1", "colour": "red"}')
    ended = policyengine("convert", tmp_path / "c.yaml", "--policy", tmp_path / "p.json")
    assert ended.code == 0 and 'policy "packed"' in ended.out and 'policy "default-scheduler"' in ended.out
    assert "// note: `colour` is not known; it was passed over" in ended.out
    for name in ("a", "b"):
        (tmp_path / f"{name}.policy").write_text(f'policy "{name}" {{ scheduler "{name}" }}\n')
    ended = policyengine("convert", "-o", "kube-scheduler", tmp_path / "a.policy", "--policy", tmp_path / "b.policy")
    assert [one["schedulerName"] for one in yaml.safe_load(ended.out)["profiles"]] == ["a", "b"]
    ended = policyengine("convert", "-o", "scheduling-policy", tmp_path / "a.policy", tmp_path / "b.policy")
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(ended.out)] == ["a", "b"]
    ended = policyengine("convert")
    assert ended.code == 2 and "name at least one FILE" in ended.err
    (tmp_path / "run.yaml").write_text("extenders: [{urlPrefix: http://a/b, colour: red}]")
    ended = policyengine("convert", "-o", "run", tmp_path / "run.yaml", tmp_path / "c.yaml")
    assert ended.out.startswith("# note: `extenders[0].colour` is not known; it was passed over\n")


def test_what_no_policy_can_be_is_shown_and_not_written(tmp_path: Path) -> None:
    labels = [{"name": "here", "argument": {"labelsPresence": {"labels": ["a"], "presence": True}}}] * 2
    (tmp_path / "p.json").write_text(json.dumps({"kind": "Policy", "apiVersion": "v1", "predicates": labels}))
    ended = policyengine("convert", tmp_path / "p.json")
    assert ended.code == 2 and not ended.out and "another filter is called `here`" in ended.err
    assert "no policy can be what the configuration asks for" in ended.err


def test_a_name_with_a_line_break_ends_no_note(tmp_path: Path) -> None:
    evil = '"x\\npolicy \\"evil\\" {}\\n": 1\n'
    (tmp_path / "c.yaml").write_text(CONFIGURATION + evil)
    ended = policyengine("convert", tmp_path / "c.yaml")
    assert ended.code == 0 and "// note: `x\\npolicy " in ended.out and ended.out.count("\npolicy ") == 1
    (tmp_path / "c.yaml").write_text('extenders: [{urlPrefix: "http://a", "x\\ny": 1}]\n')
    ended = policyengine("convert", "-o", "run", tmp_path / "c.yaml")
    assert ended.code == 0 and ended.out.startswith("# note: `extenders[0].x\\ny` is not known")


def test_of_several_files_the_one_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIGURATION)
    (tmp_path / "empty.yaml").write_text("")
    ended = policyengine("convert", "c.yaml", "empty.yaml", cwd=tmp_path)
    assert ended.code == 2 and ended.err == "Error: `empty.yaml` is not a mapping\n"


def test_options_that_mean_nothing_for_an_output_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.policy").write_text('policy "p" { param w: int = 3 score "s" weight w = 1 }')
    for given in (("--param", "w=5"), ("--url", "http://a")):
        ended = policyengine("convert", "-o", "scheduling-policy", *given, tmp_path / "p.policy")
        assert ended.code == 2 and "--param and --url go with -o kube-scheduler" in ended.err


def test_a_scheduling_policy_has_a_name_and_keys_that_an_api_server_takes(tmp_path: Path) -> None:
    to = ("convert", "-o", "scheduling-policy")
    folder = tmp_path / "ours"
    folder.mkdir()
    (folder / "p.policy").write_text('policy "p" {}')
    ended = policyengine(*to, ".", cwd=folder)
    assert ended.code == 0 and yaml.safe_load(ended.out)["metadata"] == {"name": "ours"}
    for name, told in (
        ("Our Policy.policy", "`Our Policy` is no name of an object"),
        ("p.txt", "`p.txt` is no key of a SchedulingPolicy"),
    ):
        (tmp_path / name).write_text('policy "p" {}')
        ended = policyengine(*to, tmp_path / name)
        assert ended.code == 2 and told in ended.err
    for text, told in (("kind: List\nitems: 5\n", "holds no ConfigMap"), ("5\n", "holds no ConfigMap")):
        (tmp_path / "m.yaml").write_text(text)
        ended = policyengine(*to, tmp_path / "m.yaml")
        assert ended.code == 2 and told in ended.err


def test_of_two_policies_the_second_ones_backoff_is_noted(tmp_path: Path) -> None:
    one = 'policy "{0}" {{ scheduler "{0}" queue {{ backoff 2s .. {1}s }} }}'
    (tmp_path / "p.policy").write_text(one.format("a", 20) + one.format("b", 50))
    ended = policyengine("convert", "-o", "kube-scheduler", tmp_path / "p.policy")
    assert "# note: policy `b`: its backoff is that of `a`" in ended.out and "policy `a`: its backoff" not in ended.out
    (tmp_path / "p.policy").write_text(one.format("a", 20) + one.format("b", 20))
    assert "backoff is" not in policyengine("convert", "-o", "kube-scheduler", tmp_path / "p.policy").out
