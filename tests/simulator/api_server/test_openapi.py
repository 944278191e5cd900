"""The documents kubectl explains from: every kind and field says what it is for."""

from typing import Any

import pytest

from policyengine.simulator.api_server.kinds.openapi import document, of_field, of_type
from policyengine.simulator.api_server.kinds.openapi_v2 import document_v2, protobuf
from policyengine.simulator.api_server.kinds.schema import FOLDER
from policyengine.simulator.api_server.kinds.served import Kinds

LINES = (FOLDER / "descriptions.txt").read_text(encoding="utf-8").splitlines()
KEYS = [line.partition("  ")[0] for line in LINES if line and not line.startswith("#")]
DOCUMENTS = sorted({(kind.group, kind.version) for kind in Kinds()})


def served(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return found["components"]["schemas"]  # type: ignore[no-any-return]


def everything() -> dict[str, dict[str, Any]]:
    """Every type of every document, by its Go name; where several have one name, all their fields."""
    found: dict[str, dict[str, Any]] = {}
    for group, version in DOCUMENTS:
        for name, schema in served(document(Kinds(), group, version) or {}).items():
            found.setdefault(name.rpartition(".")[2], {}).update(schema.get("properties", {}))
    return found


def test_every_text_belongs_to_a_type_or_field_and_stands_once() -> None:
    known = everything()
    stray = [key for key in KEYS if key.partition(".")[0] not in known]
    stray += [key for key in KEYS if "." in key and key.partition(".")[2] not in known.get(key.partition(".")[0], {})]
    assert stray == []
    assert len(KEYS) == len(set(KEYS))


@pytest.mark.parametrize(("group", "version"), DOCUMENTS, ids=lambda part: part or "core")
def test_everything_in_a_document_is_described(group: str, version: str) -> None:
    for name, schema in served(document(Kinds(), group, version) or {}).items():
        assert schema["description"], name
        for field, known in schema.get("properties", {}).items():
            assert known["description"].endswith("."), (name, field)


def test_what_has_no_text_is_said_by_its_name() -> None:
    assert of_type("NodeDaemonEndpoints") == "Node daemon endpoints."
    assert of_field("PodSpec", "setHostnameAsFQDN") == "Set hostname as FQDN."
    assert of_field("PodStatus", "podIPs") == "Pod IPs."
    assert of_field("Anything", "metadata") == "The object's name, labels and the like."


def test_the_old_document_has_every_kind_and_knows_no_dangling_reference() -> None:
    found: Any = document_v2(Kinds())
    definitions = found["definitions"]
    kinds = {
        (one["group"], one["version"], one["kind"])
        for schema in definitions.values()
        for one in schema.get("x-kubernetes-group-version-kind", [])
    }
    missing = {(k.group, k.version, k.kind) for k in Kinds() if k.struct is not None} - kinds
    assert missing == set()

    def references(value: Any) -> Any:
        if isinstance(value, dict):
            for key, below in value.items():
                if key == "$ref":
                    yield below
                else:
                    yield from references(below)
        elif isinstance(value, list):
            for below in value:
                yield from references(below)

    assert {ref.removeprefix("#/definitions/") for ref in references(definitions)} <= definitions.keys()
    assert protobuf(found).startswith(b"\x0a\x032.0")
