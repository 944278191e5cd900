"""What the command line of `python -m benchmarks` asks for, checked."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import click
from click.core import ParameterSource

from benchmarks.scheduler_perf import WORKLOADS
from benchmarks.workloads import Workload
from policyengine.commands.policies import load_profiles
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import PolicyError, compile_policy
from policyengine.simulator.real_server import ASSETS

ALONE = (
    "decisions",
    "memory",
    "scale",
    "language",
    "queue",
    "reload",
    "plan",
    "tuning",
    "recording",
    "devices",
    "server",
    "extender",
    "pages",
    "ratios",
    "limit",
    "churn",
    "page",
)
"""What is measured without a workload's run; `page` shows what was."""
OF_A_WORKLOAD = ("decisions", "memory", "limit")
"""Those that may be told a workload."""
DEFAULT_WORKLOAD = "peer-basic"
KUBE_SCHEDULER = "kube-scheduler"
KUBE_SCHEDULER_FLAGS = (
    "--kubeconfig {kubeconfig} --kube-api-qps 5000 --kube-api-burst 10000 --leader-elect=false --secure-port=0"
)
UNTOLD = {"output", "plot", "save", "compare", "threshold", "source", "plots"}
"""Options that do not change what is measured."""


class BenchError(click.ClickException):
    """What was asked for cannot be measured."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be measured."""

    what: str
    workload: Workload
    profile: Profile
    policy_text: str
    params: Mapping[str, str]
    """Other values of the policy's params, as they were written."""
    nodes: int | None
    """As given; the workload has them already."""
    pods: int | None
    kubeconfig: Path | None
    apiserver: Literal["embedded", "envtest"]
    beside: str | None
    with_limit: bool
    records: bool
    """Whether ours is measured once more while it records."""
    schedulers: int
    """1, or among how many the pods are split."""
    runs: int
    command: str

    @property
    def size(self) -> str:
        """Workload, sizes, policy and when pods come: what makes two measurements the same."""
        during = " during" if self.workload.during else ""
        return f"{self.workload.name} {self.workload.nodes}/{self.workload.pods} {self.policy}{during}"

    @property
    def policy(self) -> str:
        """The policy's name, with the values it was given: `training(headroom=4Gi)`."""
        given = ", ".join(f"{name}={value}" for name, value in sorted(self.params.items()))
        return f"{self.profile.name}({given})" if given else self.profile.name


def asked(
    what: str,
    name: str | None,
    *,
    nodes: int | None,
    pods: int | None,
    policy: Path | None,
    params: Mapping[str, str],
    create: str,
    kubeconfig: Path | None,
    apiserver: Literal["embedded", "envtest"],
    beside: str | None,
    with_limit: bool,
    records: bool,
    schedulers: int | None,
    runs: int,
) -> Asked:
    """From the options. Raises `click.UsageError`, `BenchError`."""
    if kubeconfig is not None and apiserver != "embedded":
        raise click.UsageError("--kubeconfig names a server that runs; --apiserver starts one")
    if schedulers and (what in ALONE or policy is not None):
        raise click.UsageError("--schedulers is for a workload with the in-tree plugins, each a policy of its own")
    if what not in OF_A_WORKLOAD and name is not None:
        raise click.UsageError(f"`{what}` takes no second workload")
    chosen = name or (DEFAULT_WORKLOAD if what in ALONE else what)
    if chosen not in WORKLOADS:
        known = ", ".join(WORKLOADS if what in ALONE else (*ALONE, *WORKLOADS))
        raise click.UsageError(f"there is no workload `{chosen}`; choose one of {known}")
    workload = replace(WORKLOADS[chosen].sized(nodes, pods), during=create == "during")
    if schedulers and workload.policy:
        raise click.UsageError(f"`{chosen}` has a policy of its own: it cannot be split among --schedulers")
    profile, text = _policy(policy, params, workload)
    return Asked(
        what,
        workload,
        profile,
        text,
        params,
        nodes,
        pods,
        kubeconfig,
        apiserver,
        beside and _program(beside),
        with_limit,
        records,
        schedulers or 1,
        runs,
        _command(click.get_current_context()),
    )


def _command(context: click.Context) -> str:
    """The command line that measures the same again, without where results go."""
    words = ["python -m benchmarks"]
    for option in context.command.params:
        name = option.name or ""
        value = context.params.get(name)
        if name in UNTOLD or value is None or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if isinstance(option, click.Argument):
            words.append(value)
        elif name == "params":
            words += [f"--param {shlex.quote(f'{key}={each}')}" for key, each in value.items()]
        elif name == "kubeconfig":
            words.append("--kubeconfig FILE")
        elif isinstance(value, bool):
            words.append(option.opts[0] if value else option.secondary_opts[0])
        else:
            words.append(f"{option.opts[0]} {shlex.quote(str(value))}")
    return " ".join(words)


def _program(beside: str) -> str:
    """The program to measure beside ours, with all its flags. Raises `BenchError`."""
    if beside != KUBE_SCHEDULER:
        return beside
    path = Path(os.environ.get(ASSETS, "")) / KUBE_SCHEDULER
    if not os.access(path, os.X_OK):
        raise BenchError(f"`{path}` is not there or cannot be run; ${ASSETS} names its folder")
    return f"{shlex.quote(str(path))} {KUBE_SCHEDULER_FLAGS}"


def _policy(path: Path | None, params: Mapping[str, str], workload: Workload) -> tuple[Profile, str]:
    """The profile that decides, and its text; the in-tree plugins have none. Raises `click.UsageError`, `BenchError`,
    and what `load_profiles` does."""
    if path is not None:
        if path.is_dir():
            raise BenchError(f"`{path}` is a folder; a benchmark is of one file")
        profiles = load_profiles([path], params)
        if len(profiles) != 1:
            raise BenchError(f"`{path}` holds {len(profiles)} policies; a benchmark is of one")
        return profiles[0], path.read_text(encoding="utf-8")
    if workload.policy:
        try:
            return compile_policy(workload.policy, params), workload.policy
        except PolicyError as error:
            raise BenchError(str(error)) from None
    if params:
        raise click.UsageError("--param is for a policy: give its file with --policy")
    return default_profile(), ""
