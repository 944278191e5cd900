"""What `deploy/` says is valid, starts commands that exist, and is taken by an API server."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from policyengine.kube.config.configuration import read
from policyengine.simulator.sandbox import kubeconfig, write_kubeconfig
from tests.commands.process import policyengine
from tests.deploy.manifests import (
    DEPLOY,
    OVERLAYS,
    ROOT,
    built,
    check,
    containers,
    documents,
    needs_kubectl,
    starts,
    written,
)
from tests.simulator.api_server.keys import Keys

WRITTEN = dict(written())


@pytest.mark.parametrize("where", WRITTEN)
def test_an_object_is_what_kubernetes_takes(where: str) -> None:
    check([WRITTEN[where]])


OURS = [one for item in WRITTEN.values() for one in containers(item) if one["image"] == "policyengine"]


@pytest.mark.parametrize("container", OURS, ids=lambda one: f"{one['name']} {one['args'][0]}")
def test_a_container_starts_a_command_that_exists(container: dict[str, Any]) -> None:
    starts(container)


@pytest.mark.parametrize("container", OURS, ids=lambda one: f"{one['name']} {one['args'][0]}")
def test_a_container_may_do_no_more_than_it_needs(container: dict[str, Any]) -> None:
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]


def test_the_policies_that_containers_name_come_with_the_image() -> None:
    named = [
        argument.partition("=")[2].removeprefix("/usr/share/policyengine/")
        for one in OURS
        for argument in one["args"]
        if argument.startswith("--policy=/usr/share/policyengine/")
    ]
    assert named and all((ROOT / name).exists() for name in named)


def test_the_configuration_file_is_one() -> None:
    [config] = documents(DEPLOY / "base" / "configuration.yaml")
    given = read(config["data"]["config.yaml"], "config.yaml")
    assert given.lease is not None


def test_the_policies_of_the_overlays_have_tests_that_pass() -> None:
    policies = sorted(DEPLOY.rglob("*.policy"))
    assert len(policies) == 2
    for policy in policies:
        ended = policyengine("test", "--coverage", "--fail-under", "100", policy)
        assert ended.code == 0, ended


def test_the_extenders_configuration_is_what_convert_writes() -> None:
    folder = DEPLOY / "overlays" / "as-extender"
    url = "http://policyengine-extender.kube-system.svc:8888"
    ended = policyengine("convert", "--to", "kube-scheduler", "--url", url, folder / "policy.policy")
    ours = yaml.safe_load(ended.out)
    ours["profiles"][0]["schedulerName"] = "default-scheduler"
    assert documents(folder / "kube-scheduler.yaml") == [ours]


@pytest.mark.parametrize("overlay", ["as-extender", "as-extender-tls", "agents"])
def test_kube_scheduler_takes_its_configuration(overlay: str, tmp_path: Path) -> None:
    binary = Path(os.environ.get("KUBEBUILDER_ASSETS", "/nowhere")) / "kube-scheduler"
    if not binary.is_file():
        pytest.skip("$KUBEBUILDER_ASSETS holds no kube-scheduler")
    [ours] = documents(DEPLOY / "overlays" / overlay / "kube-scheduler.yaml")
    write_kubeconfig(tmp_path / "kubeconfig", kubeconfig("http://127.0.0.1:1"))
    for one in ours["extenders"]:
        if "tlsConfig" in one:
            certificate, key = Keys(tmp_path).sign("client", "/CN=system:kube-scheduler")
            authority = str(tmp_path / "ca.crt")
            one["tlsConfig"] = {"certFile": str(certificate), "keyFile": str(key), "caFile": authority}
    given, effective = tmp_path / "ours.yaml", tmp_path / "effective.yaml"
    given.write_text(yaml.safe_dump(ours | {"clientConnection": {"kubeconfig": str(tmp_path / "kubeconfig")}}))
    command = [binary, "--config", given, "--write-config-to", effective, "--secure-port=0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert effective.exists(), done.stderr
    assert len(documents(effective)[0]["extenders"]) == len(ours["extenders"])


@needs_kubectl
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_builds_valid_objects(overlay: str) -> None:
    items = [one for one in yaml.safe_load_all(built(overlay)) if one]
    check(items)
    images = {one["image"] for item in items for one in containers(item)}
    assert images <= {"policyengine:0.1.0", "kube-scheduler:v1.36.2"}


@needs_kubectl
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_network_policy_says_of_every_pod_who_calls_it(overlay: str) -> None:
    items = [one for one in yaml.safe_load_all(built(overlay)) if one]
    policies = [one["spec"]["podSelector"] for one in items if one["kind"] == "NetworkPolicy"]
    assert [
        one["spec"]["selector"]
        for one in items
        if one["kind"] == "Deployment" and one["spec"]["selector"] not in policies
    ] == []
