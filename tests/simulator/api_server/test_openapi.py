"""The documents kubectl explains from: every kind and field says what it is for."""

from typing import Any

import pytest

from policyengine.simulator.api_server.kinds.api_types import FOLDER
from policyengine.simulator.api_server.kinds.openapi import document, of_field, of_type
from policyengine.simulator.api_server.kinds.served import Kinds

LINES = (FOLDER / "descriptions.txt").read_text(encoding="utf-8").splitlines()
KEYS = [line.partition("  ")[0] for line in LINES if line and not line.startswith(("#", "*", "TypeMeta"))]
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
