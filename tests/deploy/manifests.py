"""The objects of `deploy/`: as written, and as kustomize puts them together."""

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from policyengine.commands.main import COMMANDS, cli

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
OVERLAYS = (
    *("single", "ha", "beside-kube-scheduler", "as-extender", "as-extender-tls", "agents"),
    *("webhook", "webhook-cert-manager", "rewards", "other-namespaces"),
)
CUSTOM = ("monitoring.coreos.com", "cert-manager.io", "policyengine.io")
"""Groups whose schemas Kubernetes does not have."""
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on the PATH")


def documents(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one]


def written() -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, object) of every Kubernetes object in `deploy/`, the chart's templates aside."""
    for path in sorted(DEPLOY.rglob("*.yaml")):
        if "chart" in path.parts:
            continue
        for one in documents(path):
            group = str(one.get("apiVersion", ""))
            if one.get("kind") and not group.startswith(("kustomize", "kubescheduler", "policyengine")):
                yield f"{path.relative_to(DEPLOY)} {one['kind']} {one['metadata']['name']}", one


@cache
def built(overlay: str) -> str:
    """What `kubectl kustomize` makes of an overlay."""
    command = ["kubectl", "kustomize", str(DEPLOY / "overlays" / overlay)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def containers(value: Any) -> Iterator[dict[str, Any]]:
    """Every container of an object."""
    if isinstance(value, dict):
        yield from value.get("containers", ())
        for inner in value.values():
            yield from containers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from containers(inner)


def check(items: Iterable[dict[str, Any]]) -> None:
    """Each object is what Kubernetes takes, and there once."""
    seen = set()
    for one in items:
        if not one["apiVersion"].startswith(CUSTOM):
            _validate(json.dumps(one, sort_keys=True))
        name = (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        assert name not in seen
        seen.add(name)


@cache
def _validate(text: str) -> None:
    """Most objects are in several overlays, and each takes a second of a core."""
    kubernetes_validate.validate(json.loads(text), kubernetes_validate.latest_version(), strict=True)


def starts(container: dict[str, Any]) -> None:
    """The arguments of a container of ours parse; the paths in them are not looked at."""
    command, *arguments = container["args"]
    assert command in COMMANDS
    found = cli.get_command(None, command)  # type: ignore[arg-type]
    assert found is not None
    found.make_context(command, list(arguments))
