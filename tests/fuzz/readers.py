"""Damaged files through every reader of files from users; `guided` fuzzes each of them.

A reader takes a file or refuses it with one of its errors, in one line, or in one for each thing that is wrong; any
other exception is a bug, and is raised with the text that caused it.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from policyengine import plain_yaml
from policyengine.cluster.objects import ObjectError, decode
from policyengine.cluster.workload_objects import SchedulingPolicy
from policyengine.commands.convert import _policies, _run_configuration
from policyengine.commands.explaining.explained_cluster import read_cluster
from policyengine.commands.manifests import texts_of
from policyengine.commands.options import UnusableInput
from policyengine.commands.testing.suite import SuiteError, read_suite
from policyengine.control_characters import escaped_lines
from policyengine.diagnosis.dump import ClusterShapeError
from policyengine.diagnosis.explain import explain
from policyengine.kube.config import configuration, kubeconfig
from policyengine.kube.policies.compiling import compiled
from policyengine.kube.policies.params_file import read_params
from policyengine.kube.policies.precedence import Problem
from policyengine.kube.policies.rollout_settings import BadSetting
from policyengine.kube.policies.scheduling_policy import SchedulingPolicySource
from policyengine.kube.policies.sources import Report
from policyengine.language.parse import SourceError
from policyengine.plain_yaml import PlainYamlError
from policyengine.plugins.registry import default_profile
from policyengine.trials.scenario import ScenarioError
from policyengine.trials.simulation import Simulation
from tests.fuzz.guided import Target

ROOT = Path(__file__).resolve().parents[2]
REFUSALS = (
    ClusterShapeError,
    ObjectError,
    PlainYamlError,
    ScenarioError,
    SourceError,
    SuiteError,
    UnicodeDecodeError,
    UnusableInput,
    BadSetting,
    configuration.ConfigurationError,
    kubeconfig.ConfigError,
)
VALUES = (
    *("9" * 6000, "-" + "9" * 300, "9" * 40, "1e999", "-1e-999", ".nan", "-.inf", "0x" + "f" * 60, "0x_", "1:1:1"),
    *("-0", "~", "null", "true", "no", "[]", "{}", "[[]]", "{a: {}}", '""', '"a\\0b"', '"\\ud800"', "'\u202e'"),
    *('"\\ud83d\\ude00"', "*a", "&a b", "!!int 1", "<<: {}", "? [a]", "2026-99-99", "1s", "1e9d", "100%"),
    *("-1Gi", "1e400Gi", "|\n\t", "x" * 5000),
)
"""What stands in the place of another value."""
TOKEN = re.compile(r"[^\s:,\[\]{}]+")


def _kubeconfig(path: Path) -> None:
    chosen = kubeconfig.choose([str(path)])
    kubeconfig.written(chosen).authorization()


def _scenario(path: Path) -> None:
    Simulation(path, folder=ROOT / "examples/simulate")


def _dump(path: Path) -> None:
    explain(read_cluster(path), default_profile())


def _manifest(path: Path) -> None:
    for found in texts_of(path, required=True):
        if not isinstance(found, SourceError) and found.params is not None:
            read_params(found.params.source.text)


def _scheduling_policy(path: Path) -> None:
    source = SchedulingPolicySource(decode(SchedulingPolicy, plain_yaml.load(path.read_text(encoding="utf-8"))))
    report = Report(1, source.verdict, "Serving", "h", problem=Problem(source.unusable), tried={"mode": "canary"})
    assert not source.says(report), "its text is not what the scheduler writes"
    source.patch(report, "")
    _ = source.content, source.suspension
    if not source.unusable:
        compiled(source.texts)
    if (settings := source.settings) is not None and source.suspension is not None:
        source.suspension.is_of("h", settings)


READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "kubeconfig": (
        _kubeconfig,
        """
clusters: [{name: c, cluster: {server: 'https://a:1', insecure-skip-tls-verify: true, proxy-url: 'http://p'}}]
users:
- {name: u, user: {token: t, tokenFile: '', client-certificate-data: YQ==, client-key-data: YQ==}}
contexts: [{name: x, context: {cluster: c, user: u, namespace: n}}]
current-context: x
""",
    ),
    "configuration": (
        lambda path: configuration.load(path, {}),
        """
apiVersion: policyengine.io/v1
kind: SchedulerConfiguration
clientConnection: {qps: 5, burst: 7}
leaderElection: {leaderElect: true, leaseDuration: 20s, renewDeadline: 10s}
policies: {files: [a], params: {x: 1}}
extenders: [{urlPrefix: 'http://a/b', filterVerb: f, httpTimeout: 2s, weight: 3}]
""",
    ),
    "scenario": (_scenario, (ROOT / "examples/simulate/rush-hour.yaml").read_text()),
    "suite": (
        read_suite,
        """
policy: x.policy
nodes: {a: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
tests:
- name: a
  pods: {there: {on: a, requests: {cpu: 1}}, p: {}}
  expect: [{pod: p, on: a}]
""",
    ),
    "dump": (
        _dump,
        """{
"nodes": [{"metadata": {"name": "n", "labels": {"a": "b"}},
  "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
  "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": 10}}}],
"pending": [{"metadata": {"name": "p", "namespace": "d", "creationTimestamp": "2026-01-01T00:00:00Z"},
  "spec": {"priority": 5, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": 5.5}}}],
  "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}],
  "topologySpreadConstraints": [
    {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}]}}]}
""",
    ),
    "manifest": (
        _manifest,
        """
kind: ConfigMap
metadata: {name: a, namespace: b}
data:
  params.yaml: |
    a: [1, 2.5, x]
    b: {c: 4Gi}
  p.policy: |
    policy "p" {
    }
---
kind: SchedulingPolicy
metadata: {name: a, namespace: b}
spec:
  params: {a: [1, 2.5, x], b: {c: 4Gi}}
  policies:
    p.policy: |
      policy "p" {
      }
""",
    ),
    "scheduling-policy": (
        _scheduling_policy,
        """
metadata: {name: a, namespace: b, uid: u, generation: 3}
spec:
  policies: {a.policy: 'policy "p" { param most: int = 1 }'}
  params: {most: 2}
  mode: Canary
  canary: {percent: 5%, namespaceSelector: {matchLabels: {a: b}, matchExpressions: [{key: k, operator: Exists}]}}
  budget: {unschedulable: 5%, cycleTime: 20ms, window: 10m, least: 7}
status:
  observedGeneration: 3
  hash: h
  conditions: [{type: Accepted, status: 'True'}, {type: Serving, status: 'False', reason: Suspended, message: m}]
  rollout: {settings: {mode: canary, percent: 5.0, budget: {least: 7}}}
""",
    ),
    "convert": (
        lambda path: (_policies([path]), _run_configuration([path])),
        """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: s
  plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 3}], disabled: [{name: '*'}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
extenders: [{urlPrefix: 'http://a/b', filterVerb: f, weight: 1}]
""",
    ),
}
"""Reader -> what it does with a file, and a text that it takes."""


def damaged(text: str, chance: random.Random) -> bytes:
    """The text with some of its values replaced, and now and then some of its bytes."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        found = list(TOKEN.finditer(text))
        if found:
            one = chance.choice(found)
            text = text[: one.start()] + chance.choice(VALUES) + text[one.end() :]
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    if chance.random() < 0.2:
        at = chance.randrange(len(raw))
        raw[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(3))
    return bytes(raw)


def one_input(reader: str, raw: bytes, folder: Path) -> None:
    """Read the bytes as a file. Raises what no reader may raise."""
    path = folder / "file.yaml"
    path.write_bytes(raw)
    try:
        READERS[reader][0](path)
    except REFUSALS as error:
        first, *more = escaped_lines(str(error)).splitlines() or [""]
        assert first and all(str(path) in line for line in more), (
            f"a refusal is a line, or each line names the file: {error!s}"
        )
    except Exception as error:
        error.add_note(f"{reader} of {raw[:2000]!r}")
        raise


@contextmanager
def target(name: str) -> Iterator[Target]:
    """A reader, and damaged files."""

    def damage(raw: bytes, seed: int) -> bytes:
        return damaged(raw.decode(errors="replace"), random.Random(seed))

    with tempfile.TemporaryDirectory(prefix="policyengine-fuzz-") as folder:
        yield Target(lambda raw: one_input(name, raw, Path(folder)), [READERS[name][1].encode()], damage)
