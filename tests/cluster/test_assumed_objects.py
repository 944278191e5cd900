"""Objects shown as a placed pod will leave them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.storage_objects import PersistentVolume
from policyengine.cluster.view import ClusterView
from tests.cluster.view_dump import assumption_owners
from tests.scheduler.storage import volume

KIND = "PersistentVolume"


def shown(view: ClusterView, name: str = "v") -> str:
    """The claim that the volume is taken by, as readers see it."""
    ref = view.objects(PersistentVolume)[name].spec.claim_ref
    return "" if ref is None else ref.name


def started() -> ClusterView:
    view = ClusterView()
    view.set_object(KIND, volume("v", 1))
    view.assume_object("p", KIND, volume("v", 1, taken_by="c"))
    return view


def test_giving_up_shows_what_was_observed_and_says_so() -> None:
    view = started()
    version = view.version(KIND)
    (reverted,) = view.revert_objects("p")
    assert (reverted.kind, reverted.assumed, reverted.observed) == (
        KIND,
        volume("v", 1, taken_by="c"),
        volume("v", 1),
    )
    assert [event.label for event in reverted.events] == ["PersistentVolumeUpdate"]
    assert (shown(view), view.version(KIND) > version, view.revert_objects("p")) == ("", True, [])


def test_another_version_ends_it_and_the_same_one_does_not() -> None:
    view = started()
    assert view.set_object(KIND, volume("v", 1)) == []
    assert shown(view) == "c"
    view.set_object(KIND, volume("v", 2))
    assert (shown(view), assumption_owners(view), view.revert_objects("p")) == ("", set(), [])


def test_a_deletion_ends_it() -> None:
    view = started()
    view.remove_object(KIND, "v")
    assert (view.revert_objects("p"), "v" in view.objects(PersistentVolume)) == ([], False)


@pytest.mark.parametrize("item", [volume("v", 2, taken_by="d"), volume("v", 1, taken_by="d"), volume("gone", 1)])
def test_what_is_gone_changed_or_assumed_already_cannot_be_assumed(item: object) -> None:
    view = started()
    with pytest.raises(ValueError, match="cannot assume PersistentVolume"):
        view.assume_object("q", KIND, item)  # type: ignore[arg-type]
    assert shown(view) == "c"


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(st.sampled_from(["assume", "revert", "observe", "delete"]), st.sampled_from("pq"), st.integers(0, 2)),
        max_size=30,
    )
)
def test_it_never_shows_more_than_the_server_said_and_one_pod_assumes(history: list[tuple[str, str, int]]) -> None:
    view, server, assumed, version = ClusterView(), {}, {}, 0
    for step, owner, number in history:
        name = f"v{number}"
        if step == "observe":
            version += 1
            server[name] = version
            assumed.pop(name, None)
            view.set_object(KIND, volume(name, version))
        elif step == "delete":
            server.pop(name, None)
            assumed.pop(name, None)
            view.remove_object(KIND, name)
        elif step == "revert":
            assumed = {name: by for name, by in assumed.items() if by != owner}
            view.revert_objects(owner)
        elif name in server and name not in assumed:
            assumed[name] = owner
            view.assume_object(owner, KIND, volume(name, server[name], taken_by=owner))
        assert {name: shown(view, name) for name in view.objects(PersistentVolume)} == {
            name: assumed.get(name, "") for name in server
        }
