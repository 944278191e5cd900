"""A right that the scheduler's account lacks is found out by these tests."""

from pathlib import Path

import pytest
import yaml

from tests.deploy import rights as m
from tests.e2e.account import SCHEDULER
from tests.e2e.cluster import Kubectl, pod, scheduler, served

POLICY = str(Path(__file__).resolve().parent.parent.parent / "policies" / "riya.policy")


@pytest.mark.parametrize("kind", ["embedded", "envtest"])
def test_a_right_that_is_missing_is_found_out(kind: str, tmp_path: Path) -> None:
    grant = next(g for g in m.grants() if (g.resource, g.verb) == ("pods/status", "patch"))
    lost = "patch /api/v1/namespaces/default/pods/huge/status"
    with served(kind, tmp_path, refused=[lost]) as admin:
        kubectl = Kubectl(admin, "default")
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump(m.without(grant)))
        may = ("auth", "can-i", "patch", "pods/status", f"--as={SCHEDULER.name}")
        for _ in range(100):
            if kubectl(*may, check=False).startswith("no"):
                break
        with scheduler(admin, f"--policy={POLICY}"):
            kubectl.apply(pod("huge", cpu="64"))
            kubectl("wait", "--for=create", "events", "--all", "--timeout=60s")
            assert "Insufficient cpu" in kubectl("events", "--for=pod/huge")
