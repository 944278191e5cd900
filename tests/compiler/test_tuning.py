"""What of a loaded policy can be set from outside, as advice about a refusal asks."""

from __future__ import annotations

from policyengine.framework.profile import RangedParam, Tuning
from policyengine.policy_compiler import compile_policy

TEXT = """
policy "p" {
  param share: double = 0.5 range [0.0, 1.0]
  param headroom: memory = 1Gi range [0Gi, 4Gi]
  param wait: duration = 90s range [0s, 10min]
  param most: int = 3 range [1, 9]
  param free: int = 3
  param name: string = "x" values ["x", "y"]
  let tier = node.labels[?"tier"].orValue("none")
  filter "tier" { require tier == pod.labels[?"tier"].orValue("none") && pod.labels[?"app"].hasValue() }
  filter "few" { require node.podCount < most }
}
"""


def tuning(params: dict[str, str] | None = None) -> Tuning:
    found = compile_policy(TEXT, params=params).tuning
    assert found is not None
    return found


def test_numbers_with_a_range_are_listed_with_the_value_they_have() -> None:
    assert list(tuning({"most": "5"}).params()) == [
        RangedParam("share", 0.5, 0.0, 1.0, 0),
        RangedParam("headroom", 1 << 30, 0, 4 << 30, 1 << 20),
        RangedParam("wait", 90 * 10**9, 0, 600 * 10**9, 10**9),
        RangedParam("most", 5, 1, 9, 1),
    ]


def test_a_value_is_told_as_it_is_given() -> None:
    found = tuning()
    values = {"share": 0.25, "headroom": 3 << 29, "wait": 60 * 10**9, "most": 7}
    texts = {name: found.text(name, value) for name, value in values.items()}
    assert texts == {"share": "0.25", "headroom": "1536Mi", "wait": "60s", "most": "7"}
    again = {param.name: param.value for param in tuning({key: str(text) for key, text in texts.items()}).params()}
    assert again == values


def test_another_value_makes_another_profile_and_keeps_the_others() -> None:
    made = tuning({"most": "5"}).tuned("share", 1.0)
    assert made is not None and made.tuning is not None
    assert made.policy_hash == compile_policy(TEXT, params={"most": "5", "share": "1.0"}).policy_hash


def test_the_labels_that_a_filter_asks_for_are_known_through_lets() -> None:
    assert tuning().labels_read("tier") == (("app", "tier"), ("tier",))
    assert tuning().labels_read("few") == tuning().labels_read("absent") == ((), ())
