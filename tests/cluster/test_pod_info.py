import gc

import pytest

from policyengine.cluster import pod_shape
from policyengine.cluster.pod_info import PodState
from policyengine.cluster.pod_shape import normalized_image_name
from tests.builders import make_pod


def typical(name):
    return make_pod(name).req(cpu="1").label("app", "web").toleration("k", "Exists").owner("ReplicaSet", "web-1")


def test_pods_of_equal_specs_share_one_shape_and_their_labels():
    one, other = typical("p").info(), typical("q").node("n").info()
    assert one.shape is other.shape
    assert one.labels is other.labels
    assert one.owner_references is other.owner_references
    assert typical("r").priority(1).info().shape is not one.shape


def test_the_token_volume_s_random_name_does_not_keep_pods_apart():
    one = typical("p").volume("kube-api-access-abcde", projected={}).info()
    assert one.shape is typical("q").volume("kube-api-access-fghij", projected={}).info().shape
    assert typical("q").volume("data", emptyDir={}).info().shape is not one.shape


def test_a_status_that_repeats_the_spec_keeps_the_shape_a_resize_does_not():
    plain = typical("p").info()
    running = typical("q").container_status(requests={"cpu": "1"}, allocated={"cpu": "1"}, limits={})
    assert running.info().shape is plain.shape
    resized = typical("q").container_status(requests={"cpu": "2"}, allocated={"cpu": "2"}).info()
    assert resized.shape is not plain.shape
    assert resized.shape.spec == plain.shape.spec
    assert resized.requests.cpu == 2000


def test_a_shape_goes_with_its_last_pod():
    info = make_pod("only-one").req(cpu="777m").info()
    assert info.requests.cpu == 777
    before = len(pod_shape._shapes)
    del info
    gc.collect()
    assert len(pod_shape._shapes) < before


def test_host_ports_are_those_of_containers_and_sidecars():
    pod = make_pod().host_port(80).container().host_port(53, "UDP", "10.0.0.1").init(sidecar=True).init()
    pod._spec["initContainers"][0]["ports"] = [{"containerPort": 1, "hostPort": 81}, {"containerPort": 2}]
    pod._spec["initContainers"][1]["ports"] = [{"containerPort": 1, "hostPort": 82}]
    assert pod.info().shape.host_ports == (
        ("0.0.0.0", "TCP", 81),
        ("0.0.0.0", "TCP", 80),
        ("10.0.0.1", "UDP", 53),
    )


def test_images_are_those_of_all_containers_and_image_volumes_with_tags():
    pod = make_pod().image("nginx").container(image="r:5000/app").init(image="setup:v1")
    images = pod.volume("v", image={"reference": "data@sha256:0"}).info().shape.images
    assert images == ("setup:v1", "nginx:latest", "r:5000/app:latest", "data@sha256:0")


@pytest.mark.parametrize(
    ("name", "normalized"),
    [("a", "a:latest"), ("a:1", "a:1"), ("h:1/a", "h:1/a:latest"), ("h:1/a:2", "h:1/a:2"), ("", ":latest")],
)
def test_an_image_without_a_tag_is_the_latest(name, normalized):
    assert normalized_image_name(name) == normalized


def test_what_the_status_tells():
    info = (
        typical("p")
        .node("n")
        .phase("Running")
        .started("1970-01-01T00:00:05Z")
        .created("1970-01-01T00:00:01Z")
        .condition("PodScheduled", "True", time="1970-01-01T00:00:03Z")
        .condition("Ready", "True")
        .container_status(restarts=2)
        .deleting()
        .info()
    )
    assert (info.created_at, info.scheduled_at, info.started_at, info.restarts) == (1.0, 3.0, 5.0, 2)
    assert (info.state, info.deleting, info.finished, info.phase) == (PodState.BOUND, True, False, "Running")
    assert [condition.type for condition in info.conditions] == ["PodScheduled"]


def test_what_pods_are_told_goes_with_them_and_what_they_have_in_common_is_shared():
    def told(message, status="False"):
        return make_pod().condition("PodScheduled", status, "Unschedulable", message).info()

    assert told("", "True").conditions is told("", "True").conditions
    kept = len(pod_shape._values)
    assert [told(f"{number} Insufficient cpu").conditions[0].message for number in range(3)][2] == "2 Insufficient cpu"
    assert len(pod_shape._values) == kept


def test_a_time_that_cannot_be_read_does_not_hide_the_pod():
    info = make_pod().created("yesterday").started("later").info()
    assert (info.created_at, info.started_at) == (0.0, None)


def test_a_pod_that_never_was_on_a_server_goes_by_its_key():
    pod = make_pod("p", "ns").uid("").info()
    assert (pod.uid, pod.key) == ("ns/p", "ns/p")
