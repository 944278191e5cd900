"""The recipes of CONTRIBUTING.md: their tables as they are written, and an example to carry each of them out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLE = {
    "plugin": ("node_state", "closed_nodes", ""),
    "lint rule": ("", "", "PE3804"),
    "command": ("", "greet", ""),
}
"""What ROOM, NAME and CODE stand for in a recipe."""


@dataclass(frozen=True)
class Step:
    """One file of a recipe."""

    path: str
    check: str
    """The tests that fail where the file is forgotten."""
    made_by: str
    """The module that makes the file, or a part of it."""


@dataclass(frozen=True)
class Edit:
    """A text put before another one that is in the file; into an empty or new file without one."""

    new: str
    before: str = ""


def recipe(title: str) -> list[Step]:
    """The rows of a recipe's table, in their order."""
    section = re.search(rf"^### Adding a {title}\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert section is not None, f"CONTRIBUTING.md has no recipe for a {title}"
    room, name, code = EXAMPLE.get(title, ("", "", ""))
    steps = []
    for row in re.findall(r"^\| `.*\|$", section[1], re.MULTILINE):
        row = row.replace("ROOM", room).replace("NAME", name).replace("CODE", code) if title in EXAMPLE else row
        path, what, check = (cell.strip() for cell in row.strip("|").split("|"))
        made = re.search(r"made by `python -m ([\w.]+)`", what)
        steps.append(Step(path.split("`")[1], check.strip("`"), made[1] if made else ""))
    return steps


PLUGIN = '''\
"""ClosedNodes: the node called `closed` takes no pod."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import Reads
from policyengine.framework.status import SUCCESS, Code, Refusal, Rows, State, Status, Verdicts


class ClosedNodes:
    """Reads the names of the nodes."""

    name = "ClosedNodes"
    reads = Reads.NODE

    def signature(self, pod: PodInfo) -> Hashable:
        """Pods are alike."""
        return None

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Always asked."""
        return SUCCESS, snapshot.nodes.row_of.get("closed", -1)

    def filter(self, state: State, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """The closed node is refused."""
        return Verdicts((rows == state).astype(np.int16), (Refusal(Code.UNSCHEDULABLE, ("node(s) were closed",)),))

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A new node may be open."""
        return (on(Resource.NODE, ActionType.ADD),)
'''
IMPORT_PLUGIN = "from policyengine.plugins.node_state.closed_nodes import ClosedNodes\n"
PLUGIN_TEST = """\
import numpy as np

from policyengine.cluster.view import ClusterView
from policyengine.plugins.registry import build
from tests.builders import make_node, make_pod


def test_the_closed_node_takes_no_pod() -> None:
    view = ClusterView()
    for name in ("open", "closed"):
        view.add_or_update_node(make_node(name).build())
    plugin, snapshot = build("ClosedNodes"), view.snapshot()
    _, state = plugin.pre_filter(make_pod("p").info(), snapshot)
    assert plugin.filter(state, snapshot, np.arange(2)).refused.tolist() == [0, 1]
"""
RULE = '''\
@rule("PE3804", Severity.INFO)
def todo_policy(subject: Subject) -> Findings:
    """a policy that is still called `todo`

    A policy's name stands in events, metrics and `explain`; one that is called `todo` was given its name in haste, and
    says nothing to those who read it there.
    """
    if subject.written.name.text == "todo":
        yield Finding("the policy is still called `todo`", subject.written.name.span)


'''
RULE_CASES = """\
# PE3804: a policy that is still called `todo`

## Found

```policy
policy "todo" {  // ^ PE3804
  scheduler "s"
}
```

## Not found

```policy
policy "training" {
  scheduler "s"
}
```
"""
COMMAND = '''\
"""`policyengine greet`: says hello."""

from __future__ import annotations

import click


@click.command()
def greet() -> None:
    """Say hello."""
    click.echo("hello")
'''
COMMAND_TEST = """\
from tests.commands.process import policyengine


def test_it_says_hello() -> None:
    assert policyengine("greet").out == "hello\\n"
"""
FUNCTION = """\
    _method("acronym", "its first character, empty where there is none", lambda text: text[:1], "string -> string"),
"""
KIND = '''\
class VolumeSnapshot(Wire, frozen=True):
    """A snapshot of a volume."""

    metadata: ObjectMeta


'''
KIND_ROW = """\
    Kind(
        "VolumeSnapshot",
        "volumeSnapshots",
        VolumeSnapshot,
        "/apis/snapshot.storage.k8s.io/v1",
        Resource.VOLUME_SNAPSHOT,
    ),
"""

CHANGES: Mapping[str, Mapping[str, tuple[Edit, ...]]] = {
    "plugin": {
        "policyengine/plugins/node_state/closed_nodes.py": (Edit(PLUGIN),),
        "policyengine/plugins/registry.py": (
            Edit(IMPORT_PLUGIN, "from policyengine.plugins.node_state.image_locality"),
            Edit("    (ClosedNodes, None),\n", ')\n"""A row a plugin'),
        ),
        "docs/plugins.md": (Edit("### ClosedNodes\n\n**Filter**: the node called `closed`.\n\n", "## Examples\n"),),
        "tests/plugins/node_state/test_closed_nodes.py": (Edit(PLUGIN_TEST),),
    },
    "language function": {
        "policyengine/language/functions/text.py": (Edit(FUNCTION, '    _method("trim",'),),
        "policyengine/compiler/columns/kernels.py": (
            Edit('    "acronym": _by_value,\n', '    "random": _by_value,\n'),
        ),
        "docs/language.md": (Edit("acronym ", "trim lowerAscii"),),
        "tests/language/test_functions.py": (Edit('    ("\'abc\'.acronym()", "a"),\n', "    (\"'abc'.charAt(3)\""),),
    },
    "lint rule": {
        "policyengine/language/lint/rules/policy_tests.py": (Edit(RULE, '@rule("PE3803"'),),
        "tests/language/lint/PE3804.md": (Edit(RULE_CASES),),
    },
    "command": {
        "policyengine/commands/greet.py": (Edit(COMMAND),),
        "policyengine/commands/main.py": (Edit('    "greet": "Says hello.",\n', '    "lint":'),),
        "tests/commands/test_greet.py": (Edit(COMMAND_TEST),),
    },
    "kind of object": {
        "policyengine/cluster/storage_objects.py": (Edit(KIND, "class VolumeAttachment("),),
        "policyengine/cluster/events.py": (Edit('    VOLUME_SNAPSHOT = "VolumeSnapshot"\n', "    RESOURCE_CLAIM ="),),
        "policyengine/cluster/kinds.py": (
            Edit("    VolumeSnapshot,\n", ")\nfrom policyengine.cluster.workload_objects"),
            Edit(KIND_ROW, '    Kind("StorageClass",'),
        ),
        "docs/explain.md": (Edit("`volumeSnapshots`, ", "`resourceClaims`"),),
    },
}
"""Recipe -> file -> what is put into it. Files that are made whole are made."""
