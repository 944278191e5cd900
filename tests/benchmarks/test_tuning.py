import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.tuning.__main__ import main, text
from benchmarks.tuning.bound import most_gpus
from benchmarks.tuning.hour import tuning
from benchmarks.tuning.openb import ARRIVALS, GPU, HELD_OUT, MODEL, TRAINED, Cluster
from policyengine.traces.writing import TraceNode, TracePod

NODES = "sn,cpu_milli,memory_mib,gpu,model\na,16000,65536,8,G2\nb,64000,65536,2,T4\n"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
p,2000,4096,1,500,
q,8000,4096,0,0,
r,4000,4096,2,1000,G2|G3
"""


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """The smallest tables of their kind; one trace is called as its authors call it, and says nothing of models."""
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "nodes.csv").write_text(NODES)
    for trace in (*TRAINED, *HELD_OUT[:-1]):
        (folder / f"pods-{trace}.csv").write_text(PODS)
    bare = "\n".join(",".join(line.split(",")[:5]) for line in PODS.splitlines())
    (folder / f"openb_pod_list_{HELD_OUT[-1]}.csv").write_text(bare)
    return folder


def node(name: str, cpu: str, gpus: int, model: str = "G2") -> TraceNode:
    return TraceNode(name, {"cpu": cpu, "memory": "64Gi", GPU: str(gpus)}, {MODEL: model})


def pod(cpu: str, gpus: int, *models: str) -> TracePod:
    return TracePod("p", 0.0, {"cpu": cpu, "memory": "1Gi", GPU: str(gpus)}, on={MODEL: list(models)} if models else {})


class TestArrivals:
    def test_a_share_of_a_gpu_is_a_whole_one(self, traces: Path, tmp_path: Path) -> None:
        asked = {one.requests.get(GPU) for one in Cluster(traces, tmp_path).pods("default")}
        assert asked == {"1", None, "2"}

    def test_they_ask_for_as_many_gpus_as_fit_under_the_bound(self, traces: Path, tmp_path: Path) -> None:
        cluster = Cluster(traces, tmp_path)
        found = cluster.arrivals("default", 3)
        asked = sum(int(one.requests.get(GPU, "0")) for one in found)
        assert ARRIVALS * cluster.gpus - 2 < asked <= ARRIVALS * cluster.gpus == 13.0

    def test_a_seed_gives_them_again_and_another_gives_others(self, traces: Path, tmp_path: Path) -> None:
        cluster = Cluster(traces, tmp_path)
        assert cluster.arrivals("default", 1) == cluster.arrivals("default", 1)
        assert cluster.arrivals("default", 1) != cluster.arrivals("default", 2)


class TestBound:
    @pytest.fixture(autouse=True)
    def solver(self) -> None:
        pytest.importorskip("scipy")

    def test_it_is_all_gpus_where_cores_abound(self) -> None:
        assert most_gpus([node("a", "64", 8)], [pod("4", 1)] * 20) == pytest.approx(8)

    def test_cores_bound_it(self) -> None:
        assert most_gpus([node("a", "16", 8)], [pod("4", 1)] * 20) == pytest.approx(4)

    def test_the_pods_there_are_bound_it(self) -> None:
        assert most_gpus([node("a", "64", 8)], [pod("4", 1)] * 3) == pytest.approx(3)

    def test_nothing_lies_on_a_node_of_another_model(self) -> None:
        assert most_gpus(
            [node("a", "64", 8), node("b", "64", 4, "T4")], [pod("4", 1, "T4", "V100")] * 20
        ) == pytest.approx(4)

    def test_what_fits_on_no_single_node_lies_on_none(self) -> None:
        assert most_gpus([node("a", "64", 4), node("b", "64", 4)], [pod("4", 3)] * 9) == pytest.approx(6)

    def test_it_is_0_where_no_pod_fits_any_node(self) -> None:
        assert most_gpus([node("a", "64", 4)] * 2, [pod("4", 8)]) == 0


def test_what_was_found_is_told_beside_the_defaults_and_the_bound(traces: Path) -> None:
    pytest.importorskip("optuna")
    pytest.importorskip("scipy")
    head, *kinds = NODES.splitlines()  # of four nodes of a kind one is left to the search
    four = [f"{number}{kind}" for kind in kinds for number in range(4)]
    (traces / "nodes.csv").write_text("\n".join([head, *four]))
    command = [str(traces), "--seeds", "2", "--trials", "8", "--jobs", "1", "-o", "json"]
    told = json.loads(CliRunner().invoke(main, command, catch_exceptions=False).output)
    assert told["gpus"] == 40
    assert list(told["heldOut"]) == [*HELD_OUT, "all"]
    for shares in told["heldOut"].values():
        assert max(shares["MostAllocated"], shares["defaults"], shares["tuned"]) <= shares["bound"] + 1e-9
    assert told["trained"]["tuned"] >= told["trained"]["defaults"]
    shown = text(told)
    assert all(trace in shown for trace in HELD_OUT)
    assert "gain over defaults: " in shown


def test_the_command_is_measured_on_an_hour_in_which_pods_wait() -> None:
    pytest.importorskip("optuna")
    figures = {one.what.rpartition(": ")[2]: one for one in tuning(nodes=20, trials=2)}
    assert list(figures) == ["by the clock", "CPU of all processes", "peak memory of all", "candidates a minute"]
    assert figures["candidates a minute"].value == pytest.approx(2 * 60 / figures["by the clock"].value)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda folder: (folder / "nodes.csv").unlink(), "No such file"),
        (lambda folder: (folder / "nodes.csv").write_text("name,cpu\na,1\n"), "sn"),
        (lambda folder: (folder / "pods-default.csv").write_text(PODS.replace(",1,500", ",one,500")), "one"),
    ],
)
def test_a_folder_without_the_traces_is_unusable(traces: Path, spoil: Callable[[Path], object], told: str) -> None:
    spoil(traces)
    result = CliRunner().invoke(main, [str(traces), "--seeds", "2"])
    assert (result.exit_code, str(traces) in result.output, told in result.output) == (2, True, True)
