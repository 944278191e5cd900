import pytest

from policyengine.cluster.object_store import version_is_newer
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodState
from policyengine.cluster.view import ClusterView
from policyengine.cluster.workload_objects import Namespace, PodDisruptionBudget
from tests.builders import make_node, make_pod
from tests.cluster.consistency import validate_view
from tests.cluster.view_dump import dump_view


@pytest.fixture
def view():
    view = ClusterView()
    for name in "ab":
        view.add_or_update_node(make_node(name).version(1).capacity(cpu=4, memory="8Gi", pods=110).build())
    yield view
    validate_view(view)


def cpu(view, name):
    return int(view.nodes.requested("cpu")[view.nodes.row_of[name]])


def labels(events):
    return [event.label for event in events]


def observe(view, builder):
    return view.add_or_update_pod(builder.build())


def test_a_pod_goes_from_pending_to_assumed_to_bound_to_gone(view):
    change = observe(view, make_pod("p").version(1).req(cpu="1"))
    assert (change.old, labels(change.events), view.pending_count) == (None, ["UnschedulablePodAdd"], 1)
    view.assume("p", "a")
    assert (view.pods["p"].state, cpu(view, "a"), view.pending_count) == (PodState.ASSUMED, 1000, 0)
    change = observe(view, make_pod("p").version(2).req(cpu="1").node("a"))
    assert (view.pods["p"].state, labels(change.events), cpu(view, "a")) == (PodState.BOUND, ["AssignedPodAdd"], 1000)
    change = view.remove_pod("p")
    assert (labels(change.events), cpu(view, "a"), view.pods) == (["AssignedPodDelete"], 0, {})
    assert change.old is not None
    assert change.old.state is PodState.GONE


def test_forgetting_gives_the_room_back_and_counts_as_a_deletion(view):
    observe(view, make_pod("p").req(cpu="1").nominated("b"))
    view.assume("p", "a")
    assert view.nominated_on("b") == {}
    assert labels(view.forget("p")) == ["AssignedPodDelete"]
    assert (view.pods["p"].state, view.pods["p"].node_name, cpu(view, "a")) == (PodState.PENDING, "", 0)
    assert list(view.nominated_on("b")) == ["p"]


def test_a_pod_assumed_on_one_node_and_bound_to_another_is_adopted_there(view):
    observe(view, make_pod("p").version(1).req(cpu="1"))
    view.assume("p", "a")
    change = observe(view, make_pod("p").version(2).req(cpu="1").node("b"))
    assert labels(change.events) == ["AssignedPodDelete", "AssignedPodAdd"]
    assert (cpu(view, "a"), cpu(view, "b")) == (0, 1000)


def test_an_update_that_does_not_know_of_the_binding_leaves_the_pod_assumed(view):
    observe(view, make_pod("p").version(1).req(cpu="1"))
    view.assume("p", "a")
    observe(view, make_pod("p").version(2).req(cpu="2").label("k", "v"))
    assert (view.pods["p"].state, view.pods["p"].node_name, cpu(view, "a")) == (PodState.ASSUMED, "a", 2000)


def test_assuming_what_is_not_pending_or_on_no_node_is_a_bug(view):
    observe(view, make_pod("p").node("a"))
    observe(view, make_pod("q"))
    for uid, node in (("p", "a"), ("q", "nowhere"), ("unknown", "a")):
        with pytest.raises(ValueError, match="cannot assume"):
            view.assume(uid, node)


@pytest.mark.parametrize(
    ("new", "old", "is_newer"),
    [
        ("10", "9", True),
        ("9", "10", False),
        ("7", "7", False),
        ("9" * 5_000, "1", True),
        ("1", "9" * 5_000, False),
        ("latest", "9", True),
        ("", "9", True),
    ],
)
def test_which_version_replaces_which(new: str, old: str, is_newer: bool) -> None:
    assert version_is_newer(new, old) == is_newer


def test_a_new_uid_under_a_name_replaces_the_old_pod_at_once(view):
    observe(view, make_pod("p").uid("1").version(1).req(cpu="1").node("a"))
    change = observe(view, make_pod("p").uid("2").version(3).req(cpu="2"))
    assert labels(change.events) == ["AssignedPodDelete", "UnschedulablePodAdd"]
    assert (list(view.pods), cpu(view, "a")) == (["2"], 0)
    assert change.old is not None
    assert change.old.uid == "1"
    late = observe(view, make_pod("p").uid("1").version(2).req(cpu="1").node("a"))
    assert (late.events, list(view.pods)) == ([], ["2"])
    assert view.remove_pod("1").events == []
    found = view.find_pod("default", "p")
    assert found is not None
    assert found.uid == "2"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_holds_nothing(view, phase):
    observe(view, make_pod("p").version(1).req(cpu="1").node("a"))
    change = observe(view, make_pod("p").version(2).req(cpu="1").node("a").phase(phase))
    said = ["AssignedPodDelete", "FinishedPodAdd"]
    assert (labels(change.events), change.new, cpu(view, "a"), view.pods) == (said, None, 0, {})
    assert labels(observe(view, make_pod("q").node("a").phase(phase)).events) == ["FinishedPodAdd"]


def test_a_node_deleted_and_created_again_keeps_its_pods_once(view):
    observe(view, make_pod("p").req(cpu="1").node("a"))
    observe(view, make_pod("q").req(cpu="1"))
    view.assume("q", "a")
    assert labels(view.remove_node("a")) == ["NodeDelete"]
    assert view.remove_node("a") == []
    validate_view(view)
    view.add_or_update_node(make_node("a").uid("new").capacity(cpu=4).build())
    assert cpu(view, "a") == 2000
    merged = view.add_or_update_node(make_node("a").uid("newer").capacity(cpu=4).build())
    assert (labels(merged), cpu(view, "a")) == (["NodeDelete", "NodeAdd"], 2000)


def test_what_is_hypothetical_is_undone_exactly(view):
    for name in ("p", "q", "r"):
        observe(view, make_pod(name).req(cpu="1").host_port(80).node("a"))
    observe(view, make_pod("x").req(cpu="2").nominated("b"))
    before, order = dump_view(view), list(view.nodes.pods_on(0))
    with view.hypothetically(remove=["p", "q", "p", "unknown"], add=[("x", "a")]) as snapshot:
        validate_view(view)
        assert sorted(snapshot.nodes.pods_on(0)) == ["r", "x"]
        assert snapshot.nodes.requested("cpu")[0] == 3000
        assert "p" not in snapshot.pods
        with view.hypothetically(remove=["r"]):
            validate_view(view)
            assert cpu(view, "a") == 2000
        assert cpu(view, "a") == 3000
        snapshot.nodes.pods_on(0)
    assert (dump_view(view), list(view.nodes.pods_on(0))) == (before, order)
    assert view.pods["x"].state is PodState.PENDING


def test_what_is_hypothetical_is_undone_after_an_error(view):
    observe(view, make_pod("p").req(cpu="1").node("a"))
    observe(view, make_pod("x").req(cpu="2"))
    before = dump_view(view)
    with pytest.raises(ValueError, match="cannot assume"), view.hypothetically(["p"], [("x", "a"), ("x", "b")]):
        pass
    assert dump_view(view) == before
    with pytest.raises(KeyError), view.hypothetically(remove=["p"]):
        raise KeyError
    assert dump_view(view) == before


def test_nominations_are_found_by_node_until_the_pod_is_placed(view):
    observe(view, make_pod("p").version(1))
    view.nominate("p", "a")
    assert list(view.nominated_on("a")) == ["p"]
    view.nominate("p", "b")
    assert (view.nominated_on("a"), list(view.nominated_on("b"))) == ({}, ["p"])
    view.nominate("p", "")
    assert view.nominated == {}
    observe(view, make_pod("p").version(2).nominated("a"))
    assert list(view.snapshot().nominated["a"]) == ["p"]


def test_a_snapshot_is_the_same_one_until_something_changes(view):
    snapshot = view.snapshot()
    assert view.snapshot() is snapshot
    observe(view, make_pod("p"))
    assert view.snapshot() is not snapshot
    assert (len(view.snapshot().pods), view.snapshot().pending_count) == (1, 1)


def test_other_objects_are_kept_by_kind_and_key(view):
    def budget(version):
        metadata = {"name": "b", "namespace": "n", "uid": "u", "resourceVersion": str(version)}
        return decode(PodDisruptionBudget, {"metadata": metadata, "status": {"disruptionsAllowed": version}})

    assert view.set_object("PodDisruptionBudget", budget(2)) == []
    version = view.version("PodDisruptionBudget")
    view.set_object("PodDisruptionBudget", budget(1))
    assert (
        view.objects(PodDisruptionBudget)["n/b"].status.disruptions_allowed,
        view.version("PodDisruptionBudget"),
    ) == (2, version)
    namespace = decode(Namespace, {"metadata": {"name": "n", "labels": {"k": "v"}}})
    assert labels(view.set_object("Namespace", namespace)) == ["NamespaceAdd"]
    assert labels(view.set_object("Namespace", namespace)) == ["NamespaceUpdate"]
    assert view.snapshot().objects(Namespace)["n"].metadata.labels == {"k": "v"}
    assert labels(view.remove_object("Namespace", "n")) == ["NamespaceDelete"]
    assert view.remove_object("Namespace", "n") == []
    assert view.objects(Namespace) == {}
