"""Gang rules: key, minimum and timeout of a pod, and what counts where they have no value."""

from __future__ import annotations

import pytest

from policyengine.catalogue import compile_policy
from policyengine.framework.profile import GangRule
from tests.builders import make_pod

RULE = """policy "t" {
  let group = pod.labels[?"podGroup"].orValue("")
  gang "pod-group" when group != "" {
    key: pod.namespace + "/" + group
    min: toInt(pod.labels[?"minAvailable"]).orValue(1)
    timeout: 1min
  }
}"""


def gang(text: str = RULE) -> GangRule:
    return compile_policy(text).gangs[0]


def member(minimum: str | None = None) -> object:
    pod = make_pod("p", "ns").label("podGroup", "g")
    return (pod if minimum is None else pod.label("minAvailable", minimum)).info()


def test_a_pod_with_the_label_is_a_member() -> None:
    rule = gang()
    assert rule.name == "pod-group"
    assert rule.key(member()) == "ns/g"
    assert rule.timeout(member()) == 60.0


def test_a_pod_without_the_label_is_none() -> None:
    assert gang().key(make_pod("p").info()) is None


@pytest.mark.parametrize(
    ("label", "minimum"),
    [("3", 3), ("1", 1), ("0", 1), ("-5", 1), ("three", 1), ("2.5", 1), ("", 1), (None, 1), ("99999999999", 2**31 - 1)],
)
def test_a_minimum_below_one_or_no_number_counts_as_one(label: str | None, minimum: int) -> None:
    assert gang().minimum(member(label)) == minimum


def test_a_minimum_without_a_value_counts_as_one() -> None:
    text = RULE.replace('toInt(pod.labels[?"minAvailable"]).orValue(1)', "10 / pod.priority")
    assert gang(text).minimum(member()) == 1


def test_an_error_in_when_counts_as_true() -> None:
    text = RULE.replace('group != ""', "10 / pod.priority > 1")
    assert gang(text).key(member()) == "ns/g"


def test_a_key_without_a_value_makes_no_member() -> None:
    text = RULE.replace('pod.namespace + "/" + group', "string(10 / pod.priority)")
    assert gang(text).key(member()) is None


@pytest.mark.parametrize(
    ("timeout", "seconds"), [("90s", 90.0), ("1s * pod.priority", 60.0), ("1s / pod.priority", 60.0)]
)
def test_a_timeout_that_is_not_positive_counts_as_the_default(timeout: str, seconds: float) -> None:
    assert gang(RULE.replace("1min", timeout)).timeout(member()) == seconds
