"""DynamicResources has its part in what is said of a pod that fits nowhere, as in kube-scheduler 1.36."""

from __future__ import annotations

import pytest

from tests.builders import NodeBuilder, PodBuilder, make_pod
from tests.plugins.devices.devices import claim, device_class, using
from tests.scheduler.driver import Driver, conditions, node
from tests.scheduler.storage import seen

UNHELPFUL = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def refusal(pod: PodBuilder, at: NodeBuilder) -> str:
    driver = Driver()
    driver.see(at)
    for shown in seen(device_class(), claim()):
        driver.send(shown)
    driver.see(pod)
    ((reason, message),) = conditions(driver.cycle())
    assert reason == "Unschedulable"
    return message


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (make_pod("p").req(cpu="9"), f"1 Insufficient cpu. no new claims to deallocate, {UNHELPFUL}"),
        (using("c"), f"1 cannot allocate all claims. still not schedulable, {UNHELPFUL}"),
        (using("absent"), f'could not find ResourceClaim "default/absent". no new claims to deallocate, {UNHELPFUL}'),
        (make_pod("p").pvc("absent"), 'persistentvolumeclaim "absent" not found. not found'),
    ],
    ids=["without claims", "with claims", "refused by itself", "refused before it was asked"],
)
def test_every_refusal_speaks_of_claims(pod: PodBuilder, message: str) -> None:
    assert refusal(pod, node("n", cpu="1")) == f"0/1 nodes are available: {message}"
