"""Long lists cost the embedded server time that grows with their length, not with its square."""

import json
import time
from collections.abc import Callable, Iterator

import pytest

from policyengine.simulator.api_server.decoding.json_and_yaml import duplicates
from policyengine.simulator.api_server.kinds.api_types import Type
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage import Object
from policyengine.simulator.api_server.validation.rules import distinct, validate
from policyengine.simulator.api_server.writing.field_paths import mistyped, plain
from policyengine.simulator.api_server.writing.managed_fields import APPLY, Manager, apply

MANY = 20_000
POD = plain(Type("struct", ref="core/v1:Pod"))


def named(count: int) -> list[Json]:
    return [{"name": f"c{one}"} for one in range(count)]


def spec(**fields: Json) -> Object:
    return {
        "metadata": {},
        "spec": {
            "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always"}],
            "restartPolicy": "Always",
            **fields,
        },
    }


def names_are_distinct() -> Iterator[object]:
    return distinct(named(2 * MANY), "spec.containers", "name")


def tolerations_stay() -> Iterator[object]:
    held: list[Json] = [{"key": f"k{one}", "operator": "Exists"} for one in range(MANY)]
    return validate("Pod", spec(tolerations=[*held, {"operator": "Exists"}]), spec(tolerations=held))


def gates_go() -> Iterator[object]:
    return validate("Pod", spec(schedulingGates=named(MANY)[1:]), spec(schedulingGates=named(MANY)))


def fields_stand_there_twice() -> Iterator[object]:
    body = "{" + ",".join(f'"f{one}": 1, "f{one}": 1' for one in range(MANY)) + "}"
    assert len(duplicates(body.encode())) == MANY
    return iter(())


def keys_of_an_applied_list() -> Iterator[object]:
    return iter(mistyped(spec(containers=named(MANY)), POD))


def items_are_given_up() -> Iterator[object]:
    manager, count = Manager("m", APPLY, "v1"), MANY // 4
    all_ = apply({"metadata": {}}, spec(containers=named(count)), POD, manager, False, True, "")
    left = apply(all_, spec(containers=named(count // 2)), POD, manager, False, True, "")
    assert json.dumps(left).count('"name"') == count // 2
    return iter(())


@pytest.mark.parametrize(
    "costs",
    [
        names_are_distinct,
        tolerations_stay,
        gates_go,
        fields_stand_there_twice,
        keys_of_an_applied_list,
        items_are_given_up,
    ],
    ids=lambda case: case.__name__,
)
def test_a_long_list_takes_little_time(costs: Callable[[], Iterator[object]]) -> None:
    began = time.process_time()
    assert not list(costs())
    assert time.process_time() - began < 2
