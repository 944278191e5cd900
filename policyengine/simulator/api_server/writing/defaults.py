"""The defaults the real server fills in, by kind: the table `kinds/schemas/defaults.txt`, and what is worked out.

A default that no line of the table can say is a function here: `COMPUTED` lists them by kind.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache

import msgspec

from policyengine.simulator.api_server.kinds.api_types import FOLDER
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage import Object, child, objects

Path = tuple[str, ...]
CONTAINERS = ("initContainers", "containers")
EMPTY: tuple[Json, ...] = (None, "", {})


@dataclass(frozen=True, slots=True)
class Default:
    """One line of the table: the field at `path` is `value`, or what the field `beside` it is."""

    path: Path
    value: Json = None
    beside: str = ""
    asked: str = ""
    """The field beside it that decides whether there is a default; empty for none."""
    words: frozenset[str] = frozenset()
    """What the field asked may be, or with `but` may not be."""
    but: bool = False

    def fill(self, held: Json, at: int = 0) -> None:
        """Set the field below `held`, wherever what holds it is there."""
        name = self.path[at]
        if name == "[]":
            for item in held if isinstance(held, list) else ():
                self.fill(item, at + 1)
        elif isinstance(held, dict) and at + 1 < len(self.path):
            self.fill(held.get(name), at + 1)
        elif isinstance(held, dict) and self.beside:
            if not held.get(name) and self.beside in held:
                held[name] = deepcopy(held[self.beside])
        elif isinstance(held, dict) and held.get(name) in EMPTY and self._is_meant(held):
            held[name] = deepcopy(self.value)

    def _is_meant(self, holder: Object) -> bool:
        return not self.asked or (str(holder.get(self.asked) or "") in self.words) is not self.but


@cache
def _table() -> dict[str, tuple[Default, ...]]:
    """The lines by kind."""
    found: dict[str, list[str]] = {}
    kind = ""
    for line in (FOLDER / "defaults.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            found[kind].append(line.strip())
        elif not line.startswith("#"):
            kind = line
            found[kind] = []

    def expanded(kind: str, below: str = "") -> Iterator[Default]:
        for line in found[kind]:
            name, _, rest = line.partition(" ")
            if name == "=":
                other, _, path = rest.partition(" ")
                yield from expanded(other, f"{below}{path}.")
                continue
            said, _, condition = rest.partition(" if ")
            asked, _, words = condition.partition("=")
            yield Default(
                tuple((below + name).replace("[]", ".[]").split(".")),
                None if said.startswith("@") else msgspec.json.decode(said),
                said[1:] if said.startswith("@") else "",
                asked.rstrip("!"),
                frozenset(words.split(",")),
                asked.endswith("!"),
            )

    return {kind: tuple(expanded(kind)) for kind in found}


def apply_defaults(kind: str, obj: Object) -> None:
    """Fill in what `obj` leaves open."""
    for default in _table().get(kind, ()):
        default.fill(obj)
    if kind in POD_SPECS:
        _pod_spec(child(obj, *POD_SPECS[kind]))
    if kind in COMPUTED:
        COMPUTED[kind](obj)


# What is worked out


def image_tag(image: str) -> str:
    """The tag of an image reference; `latest` where neither tag nor digest is given."""
    name, _, digest = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return tag if colon else "" if digest else "latest"


def _pod_spec(spec: Object) -> None:
    """Policies that follow the image, sources of volumes, the account under both its names."""
    if not spec:
        return
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for one in [one for name in (*CONTAINERS, "ephemeralContainers") for one in objects(spec.get(name))]:
        pull = "Always" if image_tag(str(one.get("image", ""))) == "latest" else "IfNotPresent"
        one["imagePullPolicy"] = one.get("imagePullPolicy") or pull
    for volume in objects(spec.get("volumes")):
        if not any(isinstance(source, dict) for source in volume.values()):
            volume["emptyDir"] = {}


def _pod(obj: Object) -> None:
    """Requests follow limits, and host-network pods have their container ports on the host."""
    spec = child(obj, "spec")
    containers = [one for name in CONTAINERS for one in objects(spec.get(name))]
    whole = child(spec, "resources")
    if child(whole, "limits"):
        asked = {name for one in objects(spec.get("containers")) for name in child(one, "resources", "requests")}
        follow = {name: amount for name, amount in child(whole, "limits").items() if name not in asked}
        whole["requests"] = {**follow, **child(whole, "requests")}
    for one in containers:
        resources = child(one, "resources")
        if child(resources, "limits"):
            resources["requests"] = {**child(resources, "limits"), **child(resources, "requests")}
        for port in objects(one.get("ports")) if spec.get("hostNetwork") else []:
            port["hostPort"] = port.get("hostPort") or port.get("containerPort")


def _job(obj: Object) -> None:
    """Without labels of its own a Job shares those of its pods, one object with them."""
    meta, labels = child(obj, "metadata"), child(obj, "spec", "template", "metadata").get("labels")
    if labels and not meta.get("labels"):
        meta["labels"] = labels


def _namespace(obj: Object) -> None:
    """Its name is one of its labels."""
    meta = child(obj, "metadata")
    if meta.get("name"):
        meta["labels"] = {**child(meta, "labels"), "kubernetes.io/metadata.name": meta["name"]}


def _secret(obj: Object) -> None:
    """What is given as plain text is stored as data."""
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict) and plain:
        encoded = {k: b64encode(str(v).encode()).decode() for k, v in plain.items()}
        obj["data"] = {**child(obj, "data"), **encoded}


def _custom_resource_definition(obj: Object) -> None:
    names = child(obj, "spec", "names")
    if names:
        kind = str(names.get("kind", ""))
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    for version in objects(child(obj, "spec").get("versions")):
        for column in objects(version.get("additionalPrinterColumns")):
            if not column.get("priority"):
                column.pop("priority", None)


WORKLOADS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")
POD_SPECS: dict[str, Path] = {
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(WORKLOADS, ("spec", "template", "spec")),
}
"""Where a kind holds a PodSpec."""
COMPUTED: dict[str, Callable[[Object], None]] = {
    "Pod": _pod,
    "Namespace": _namespace,
    "Job": _job,
    "Secret": _secret,
    "CustomResourceDefinition": _custom_resource_definition,
}
