"""Rules that read `now` or `cluster` are asked again every minute."""

from policyengine.policy_compiler import compile_policy
from tests.scheduler.driver import Driver, binds, node, pod

LATE = """policy "late" {
  scheduler "default-scheduler"
  filter "not yet" { require now >= timestamp("1970-01-01T00:18:20Z") else "it is too early" }
}"""  # 1100 seconds after the epoch; the driver starts at 1000


def test_a_pod_refused_for_the_hour_is_asked_again_when_a_minute_begins() -> None:
    driver = Driver(compile_policy(LATE))
    driver.see(node(), pod())
    assert binds(driver.cycle()) == {}
    driver.wait(10)
    assert driver.state.next_wakeup() == 1020.0
    driver.wait(15)
    assert binds(driver.cycle()) == {}
    driver.wait(100)
    assert list(binds(driver.cycle()).values()) == ["n1"]


def test_the_passing_of_time_wakes_nobody_whose_rules_do_not_read_it() -> None:
    driver = Driver()
    driver.see(node(cpu="1"), pod(cpu="2"))
    driver.cycle()
    wakeup = driver.state.next_wakeup()
    assert wakeup is not None
    assert wakeup > 1300
