"""`policyengine explain`: what becomes of the pods that wait, of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from policyengine.commands.explain import explain
from tests.builders import make_node, make_pod
from tests.commands.process import ROOT

Json = dict[str, Any]
EXAMPLES = ROOT / "examples"
RIYA = str(ROOT / "policies" / "riya.policy")


def run(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(explain, ["--cluster", str(path), *arguments])


def written(tmp_path: Path, *items: Json) -> Path:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": list(items)}), encoding="utf-8")
    return path


def node(name: str = "a", cpu: str = "4") -> Json:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods="10").json()


def pod(name: str, cpu: str = "1", **spec: Any) -> Json:
    item = make_pod(name).req(cpu=cpu).json()
    item["spec"].update(spec)
    return item


def carrier(text: str, name: str = "p", namespace: str = "kube-system", **annotations: str) -> Json:
    metadata = {"name": name, "namespace": namespace, "labels": {"policyengine.io/policy": "true"}}
    metadata["annotations"] = {f"policyengine.io/{key}": value for key, value in annotations.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a.policy": text}}


def crew(tmp_path: Path) -> Path:
    path = tmp_path / "crew.yaml"
    files = (EXAMPLES / "first-steps/tenth-node.yaml", EXAMPLES / "riya/1-pre-filter/too-few.yaml")
    path.write_text("\n---\n".join(file.read_text(encoding="utf-8") for file in files), encoding="utf-8")
    return path


def test_the_gang_of_the_readme_is_told_as_the_event_tells_it(tmp_path: Path) -> None:
    result = run(crew(tmp_path), "--policy", RIYA)
    told = [f"default/crew-{number}  held: gang pod-group: 2 of 3 members exist" for number in (1, 2)]
    assert (result.exit_code, result.stdout.splitlines()) == (0, told)


def test_a_name_without_namespace_is_one_of_default(tmp_path: Path) -> None:
    for name in ("crew-2", "default/crew-2"):
        (entry,) = json.loads(run(crew(tmp_path), name, "--policy", RIYA, "-o", "json").stdout)
        assert (entry["pod"], entry["outcome"]) == ("default/crew-2", "held")


def test_a_misspelt_scheduler_gets_no_node_but_the_names_that_are_served(tmp_path: Path) -> None:
    path = written(tmp_path, node(), pod("p", schedulerName="policy-schedular"))
    result = run(path, "--policy", RIYA)
    served = "served are policy-scheduler, default-scheduler"
    first, *rest = result.stdout.splitlines()
    assert first == f"default/p  nobody serves its schedulerName `policy-schedular`; {served}"
    assert rest[1].split("  ")[1] == "ask for the scheduler policy-scheduler instead of policy-schedular"
    assert "no pod that waits in" in result.stderr and "--alone" in result.stderr


def test_one_pod_comes_with_what_its_last_attempt_weighed(tmp_path: Path) -> None:
    path = written(tmp_path, node("a"), node("b"), node("c", cpu="500m"), pod("p"), pod("q"))
    result = run(path, "q")
    first, *rest = result.stdout.splitlines()
    assert first.startswith("default/q  → ") and "score" in rest[0]
    assert "NodeResourcesFit: Insufficient cpu" in result.stdout
    (entry,) = json.loads(run(path, "q", "-o", "json").stdout)
    assert set(entry["total"]) == {"a", "b"} and entry["rejected"]["c"]["plugin"] == "NodeResourcesFit"


def test_victims_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, node(cpu="1"), pod("old", nodeName="a"), pod("urgent", priority=9), pod("calm"))
    urgent, calm = run(path, "--now", "2026-01-05T10:00:00Z").stdout.splitlines()
    assert urgent == "default/urgent  → a  after 30 s  once default/old is evicted"
    assert calm.startswith("default/calm  fits nowhere: 0/1 nodes are available: 1 Insufficient cpu.")


def test_what_would_help_one_that_fits_nowhere_is_shown(tmp_path: Path) -> None:
    path = written(tmp_path, node(cpu="1"), pod("huge", cpu="64"), pod("p", cpu="500m"))
    assert "request 500m cpu instead of 64  a" in run(path, "huge").stdout


def test_every_policy_counts(tmp_path: Path) -> None:
    for name in ("x", "y"):
        text = f'policy "{name}" {{ scheduler "{name}" filter "{name}" {{ require false else "{name} says no" }} }}'
        (tmp_path / f"{name}.policy").write_text(text, encoding="utf-8")
    path = written(tmp_path, node(), pod("p", schedulerName="x"), pod("q", schedulerName="y"), pod("r"))
    flags = [part for name in ("x", "y") for part in ("--policy", str(tmp_path / f"{name}.policy"))]
    p, q, r = run(path, *flags).stdout.splitlines()
    assert "x says no" in p and "y says no" in q and r == "default/r  → a"


NEVER = 'policy "never" { scheduler "x" filter "never" { require false else "not today" } }'
EVER = 'policy "ever" { scheduler "x" }'


def test_the_policy_that_serves_in_the_file_decides(tmp_path: Path) -> None:
    items = [node(), pod("p", schedulerName="x"), carrier(NEVER)]
    assert "not today" in run(written(tmp_path, *items)).stdout


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (carrier(EVER, "b", mode="shadow"), ""),
        (carrier('policy "broken" { scheduler "x" filter }', "b"), "ConfigMap `kube-system/b` does not serve: "),
        (
            carrier(EVER, "b"),
            "ConfigMap `kube-system/b` does not serve: scheduler `x` is served by the older ConfigMap `kube-system/a`",
        ),
        (
            carrier(EVER, "b", status='{"state": "rejected", "dataHash": "%s", "message": "says the scheduler"}'),
            "ConfigMap `kube-system/b` does not serve: says the scheduler",
        ),
        ({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "b"}, "data": {"b.policy": EVER}}, ""),
    ],
)
def test_a_shadow_and_one_that_is_rejected_do_not(tmp_path: Path, other: Json, said: str) -> None:
    from policyengine.cluster.objects import decode
    from policyengine.cluster.workload_objects import ConfigMap
    from policyengine.kube.policies.config_map import ConfigMapSource

    annotations = other["metadata"].get("annotations", {})
    if "policyengine.io/status" in annotations:
        annotations["policyengine.io/status"] %= ConfigMapSource(decode(ConfigMap, other)).version
    result = run(written(tmp_path, node(), pod("p", schedulerName="x"), carrier(NEVER, "a"), other))
    assert "not today" in result.stdout
    assert said in result.stderr and (said or not result.stderr)


def test_policies_of_a_namespace_that_no_scheduler_reads_do_not_count(tmp_path: Path) -> None:
    answered = carrier(NEVER, "a", status='{"state": "accepted"}')
    result = run(written(tmp_path, node(), pod("p", schedulerName="x"), answered, carrier(EVER, "b", "team")))
    assert "not today" in result.stdout
    assert "ConfigMap `team/b` is in a namespace of which no scheduler reads policies" in result.stderr


def test_yaml_of_several_documents_and_lists_in_lists_are_read(tmp_path: Path) -> None:
    inner = {"kind": "PodList", "apiVersion": "v1", "items": [{k: v for k, v in pod("p").items() if k != "kind"}]}
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([node(), {"kind": "List", "items": [inner]}]), encoding="utf-8")
    assert run(path).stdout.splitlines()[0] == "default/p  → a"
    path.write_text(json.dumps(node()) + "\n" + json.dumps(inner), encoding="utf-8")
    assert run(path).stdout.splitlines()[0] == "default/p  → a"


def test_what_is_missing_in_the_file_is_told_in_a_line(tmp_path: Path) -> None:
    claim = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    result = run(written(tmp_path, pod("p", volumes=claim, priorityClassName="high")))
    missing, priority = result.stderr.splitlines()
    assert "has no nodes, persistentvolumeclaims, persistentvolumes, storageclasses, which its pods" in missing
    assert "kubectl get nodes,pods,persistentvolumeclaims,persistentvolumes,storageclasses -A -o json" in missing
    assert "1 pod in" in priority and "they count as 0" in priority


def test_a_policy_that_asks_for_a_pod_group_by_its_name_is_told_where_the_file_has_none(tmp_path: Path) -> None:
    policy = tmp_path / "t.policy"
    text = 'policy "t" { scheduler "default-scheduler" filter "f" { require podGroup("g").hasValue() else "none" } }'
    policy.write_text(text, encoding="utf-8")
    [line] = run(written(tmp_path, node(), pod("p")), "--policy", str(policy)).stderr.splitlines()
    assert "has no podgroups, which" in line and "kubectl get nodes,pods,podgroups -A -o json" in line


def test_nodes_that_say_no_room_for_pods_are_told_in_a_line(tmp_path: Path) -> None:
    bare = node()
    bare["status"]["allocatable"].pop("pods")
    [line] = run(written(tmp_path, bare, pod("p"))).stderr.splitlines()
    assert line.startswith("note: 1 node in ") and "such as a, say no `pods` in status.allocatable" in line
    assert run(written(tmp_path, node(), pod("p"))).stderr == ""
    bare["status"]["allocatable"] |= {"pods": "110", "cpu": "-4"}
    [line] = run(written(tmp_path, bare, pod("p"))).stderr.splitlines()
    assert "status.allocatable: `cpu`: `-4` is negative" in line and line.endswith("no pod fits there")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("default/crew-3", "no pod `default/crew-3` is in"),
        ("crow-2", "did you mean `default/crew-2`?"),
        ("team/crew-2", "no pod `team/crew-2` is in"),
        ("a/b/c", "`a/b/c` is not of the form NAME or NAMESPACE/NAME"),
        ("/x", "is not of the form"),
    ],
)
def test_a_pod_that_is_not_there_exits_2_with_what_may_be_meant(tmp_path: Path, name: str, said: str) -> None:
    result = run(crew(tmp_path), name, "--policy", RIYA)
    assert result.exit_code == 2 and said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_hostile_names_reach_no_terminal(tmp_path: Path) -> None:
    result = run(written(tmp_path, node(), pod("p", schedulerName="\x1b[2Jx")))
    assert "\x1b" not in result.stdout + result.stderr


def test_a_cluster_and_a_file_are_not_asked_together(tmp_path: Path) -> None:
    result = run(crew(tmp_path), "--context", "c")
    assert result.exit_code == 2 and "give --cluster FILE, or --kubeconfig and --context" in result.stderr


def test_a_held_pod_is_told_what_would_help_and_the_command(tmp_path: Path) -> None:
    owner = {"kind": "StatefulSet", "name": "crew", "uid": "u", "controller": True}
    labels = {"podGroup": "crew", "minAvailable": "2"}
    member = make_pod("crew-0").labels(labels).scheduler("policy-scheduler").set("metadata.ownerReferences", [owner])
    lines = run(written(tmp_path, node(), member.json()), "crew-0", "--policy", RIYA).stdout.splitlines()
    assert lines[0] == "default/crew-0  held: gang pod-group: 1 of 2 members exist"
    assert "add 1 member like default/crew-0 to its gang" in lines[2]
    assert lines[-1] == "  kubectl --namespace default scale statefulset/crew --replicas=2"


def test_what_others_pay_for_a_change_is_told(tmp_path: Path) -> None:
    first = pod("q", "2")
    first["metadata"]["creationTimestamp"] = "2026-01-05T06:00:00Z"
    important = pod("p", "4", priority=5, nodeSelector={"disk": "ssd"})
    result = run(written(tmp_path, node(), first, important), "p")
    assert "default/q is then unschedulable" in result.stdout
    (entry,) = json.loads(run(written(tmp_path, node(), first, important), "p", "-o", "json").stdout)
    assert entry["suggestions"][0]["costs"] == {"default/q": "unschedulable"}
