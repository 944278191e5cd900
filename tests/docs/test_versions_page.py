"""What docs/versions.md says of versions is what the code and the tests have."""

import re
import tomllib
from pathlib import Path

from policyengine.cluster.kinds import BY_KIND, CONFIG_MAPS, NODES, PODS
from policyengine.compiler.conversion.kube_scheduler import kube_scheduler_configuration
from policyengine.kube.config.configuration import API_VERSION as CONFIGURATION
from policyengine.kube.watching.informers import kinds_read
from policyengine.plugins.registry import IN_TREE, default_profile
from policyengine.policy_compiler import compile_policy, compile_text
from policyengine.server.webhook import API_VERSION as ADMISSION
from policyengine.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
POLICY = 'policy "p" {{ {} filter "f" {{ require node.ready }} }}'
DEVICES = {"ResourceClaim", "ResourceSlice", "DeviceClass"}


def test_the_apis_are_those_of_the_table_of_kinds() -> None:
    rows = re.findall(r"^\| `([^`]+)`(, if it is served)? \| ([a-z, ]+) \| [1a]", PAGE, re.MULTILINE)
    told = {(api, kind, bool(optional)) for api, optional, kinds in rows for kind in kinds.split(", ")}
    newest = (PODS, NODES, CONFIG_MAPS, *BY_KIND.values())
    kinds = [*newest, *(older for kind in newest for older in kind.older)]
    api = {kind.group_path: kind.group_path.removeprefix("/apis/").removeprefix("/api/") for kind in kinds}
    assert told == {(api[kind.group_path], kind.plural, kind.is_optional) for kind in kinds}


def test_the_versions_are_those_that_are_tested_and_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert f"| Python | {', '.join(named)} |" in PAGE and project["requires-python"] == f">={named[0]}"
    [recording] = (ROOT / "tests" / "record" / "recordings").glob("kube-apiserver-*.json")
    assert f"tested with {recording.stem.removeprefix('kube-apiserver-')}" in PAGE
    assert __version__.startswith("0.") and "This is 0.x" in PAGE


def test_the_formats_are_those_that_are_read_and_written() -> None:
    printed = kube_scheduler_configuration(compile_text(POLICY.format("")).policies, IN_TREE, "http://a")
    for form in (CONFIGURATION, ADMISSION, printed["apiVersion"]):
        assert f"`{form}`" in PAGE


def test_only_dynamic_resources_needs_the_newest_of_the_apis() -> None:
    assert kinds_read(default_profile()) >= DEVICES
    without = kinds_read(compile_policy(POLICY.format("disable DynamicResources")))
    assert not without & DEVICES
