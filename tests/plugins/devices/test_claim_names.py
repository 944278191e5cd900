"""Which claims a pod means: many of them are found by their names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from policyengine.cluster.pod_objects import PodResourceClaim, PodResourceClaimStatus
from policyengine.plugins.devices.claim_state import claim_names

MANY = 500


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str(self) == str(other)

    __hash__ = str.__hash__


def pod(entries: list[PodResourceClaim], made: list[PodResourceClaimStatus]) -> Any:
    spec = SimpleNamespace(resource_claims=tuple(entries))
    return SimpleNamespace(key="default/p", shape=SimpleNamespace(spec=spec), resource_claims=tuple(made))


def test_of_several_claims_made_for_one_entry_the_first_counts_and_a_null_is_passed_over() -> None:
    entries = [PodResourceClaim(name, resource_claim_template_name="t") for name in ("a", "b")]
    entries.append(PodResourceClaim("c", resource_claim_name="own"))
    made = [PodResourceClaimStatus(*one) for one in (("b", "b-1"), ("a", None), ("b", "b-2"))]
    assert claim_names(pod(entries, made)) == {"b-1": True, "own": False}
    assert claim_names(pod(entries, made[:1])) == 'pod "default/p": ResourceClaim not created yet'


def test_claims_of_thousands_of_templates_are_not_looked_for_one_by_one() -> None:
    entries = [PodResourceClaim(Counted(f"e{n}"), resource_claim_template_name="t") for n in range(MANY)]
    made = [PodResourceClaimStatus(Counted(f"e{n}"), f"claim-{n}") for n in range(MANY)]
    Counted.compared = 0
    names = claim_names(pod(entries, made))
    assert list(names) == [f"claim-{n}" for n in range(MANY)]
    assert Counted.compared <= 2 * MANY
