"""What a policy is tried on in the playground: a text that is a scenario, or a cluster as `kubectl` prints it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from policyengine import plain_yaml
from policyengine.cluster.kinds import PODS
from policyengine.cluster.objects import ObjectError
from policyengine.cluster.pod_info import seconds_or_none
from policyengine.compiler.assemble import PluginRegistry
from policyengine.diagnosis.dump import ClusterShapeError, DumpedObject, objects_in, read_objects
from policyengine.framework.profile import Profile
from policyengine.plan.membership import Memberships, Watching
from policyengine.plan.rerun import Rerun, finished, rerun
from policyengine.plan.snapshot import history_of, once_each
from policyengine.trials.simulation import Simulation

Json = dict[str, Any]
Items = tuple[list[Json], list[Json]]
"""Nodes and pods, as the API has them."""
_LISTS: Final = ("nodes", "pods")


class Unusable(ValueError):
    """The text is neither; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What can be played under policies."""

    play: Callable[[Sequence[Profile], Memberships], Rerun]
    """Raises `ScenarioError`."""
    items: Callable[[Sequence[Profile]], Items]
    """What there is: of a scenario, in its end; of pods that are alike, in the order in which they came."""
    where: str
    scenario: Json | None
    """Its data; None for a cluster that is as it is."""
    notes: list[str] = field(default_factory=list)


def read(text: str, registry: PluginRegistry) -> Cluster:
    """What the text says. Raises `Unusable`."""
    try:
        found = _documents(text)
        if len(found) != 1:
            found = [{"kind": "List", "items": found}]
        return _of_dump(found[0]) if _is_dump(found[0]) else _of_scenario(text, found[0], registry)
    except plain_yaml.PlainYamlError as error:
        raise Unusable(f"the cluster {error}") from None
    except (ClusterShapeError, ObjectError) as error:
        raise Unusable(f"the cluster cannot be read: {error}") from None


def _documents(text: str) -> list[Any]:
    """The documents that hold something. Raises `PlainYamlError`, `Unusable`."""
    if text.lstrip()[:1] == "{":
        try:
            return [json.loads(text)]
        except RecursionError:
            raise Unusable("the cluster is nested too deeply") from None
        except ValueError:
            pass  # YAML may begin so too, and says better what is wrong
    found = [plain_yaml.plain(document) for document in plain_yaml.documents(text)]
    return [document for document in found if document is not None] or [{}]


def _is_dump(data: Any) -> bool:
    """Whether it holds objects of the API rather than what a scenario makes them of."""
    if not isinstance(data, Mapping):
        return False
    listed = [item for name in _LISTS for item in _listed(data.get(name))]
    return bool({"items", "kind", "pending"} & data.keys()) or any("metadata" in item for item in listed)


def _listed(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _of_scenario(text: str, data: Any, registry: PluginRegistry) -> Cluster:
    text += "\n"  # a scenario's text, never the name of its file

    def made(profiles: Sequence[Profile], watching: Watching | None = None) -> Simulation:
        return Simulation(text, profiles, registry=registry, watch=watching)

    def play(profiles: Sequence[Profile], memberships: Memberships) -> Rerun:
        watching = Watching(memberships)
        run = made(profiles, watching)
        watching.play = run.play
        run.run()
        return finished(run.play, watching)

    def items(profiles: Sequence[Profile]) -> Items:
        run = made(profiles)
        run.run()
        return list(run.play.node_items.values()), [msgspec.to_builtins(pod.pod) for pod in run.play.pods.values()]

    has_policies = isinstance(data, Mapping) and "policies" in data
    notes = ["its own policies are not used: the policy is the text on the left"] if has_policies else []
    return Cluster(play, items, "the scenario", data, notes)


def _of_dump(data: Any) -> Cluster:
    objects, notes = once_each(read_objects(data))
    history = history_of(objects, _newest(objects), anew=False)

    def play(profiles: Sequence[Profile], memberships: Memberships) -> Rerun:
        return rerun(history, profiles, memberships=memberships)

    def items(profiles: Sequence[Profile]) -> Items:
        found: Items = [], []
        for kind, item in objects_in(data):
            if kind in ("Node", PODS.kind):
                found[kind == PODS.kind].append(dict(item))
        return found

    return Cluster(play, items, "the cluster as it is", None, notes)


def _newest(objects: Sequence[DumpedObject]) -> float:
    """When the newest of it was created: the time it is there."""
    created = (seconds_or_none(one.object.metadata.creation_timestamp) for one in objects)
    return max((seconds for seconds in created if seconds is not None), default=0.0)
