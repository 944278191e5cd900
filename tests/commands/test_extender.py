"""The extender's command line: what keeps it from starting, in one line."""

from pathlib import Path

import pytest

from tests.commands.process import policyengine

POLICY = 'policy "calm" { filter "quiet" { require node.name != "x" } }'
READS_PODS = 'policy "room" { filter "spare" { require node.free.cpu > 1 } }'


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "calm.policy"
    path.write_text(POLICY)
    return path


@pytest.mark.parametrize("listen", ["8080x", "host", ":99999", "127.0.0.1:"])
def test_an_address_without_a_port_is_refused(policy: Path, listen: str) -> None:
    ended = policyengine("extender", "--policy", policy, "--listen", listen)
    assert ended.code == 2 and f"--listen is `{listen}`" in ended.err


def test_the_environments_port_and_level_are_checked(policy: Path) -> None:
    ended = policyengine("extender", "--policy", policy, env={"HTTP_PORT": "http"})
    assert ended.code == 2 and "$HTTP_PORT is `http`" in ended.err
    ended = policyengine("extender", "--policy", policy, env={"LOG_LEVEL": "LOUD"})
    assert ended.code == 2 and "$LOG_LEVEL is `LOUD`" in ended.err


def test_two_policies_of_one_name_are_refused(policy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.policy"
    other.write_text(POLICY)
    ended = policyengine("extender", "--policy", policy, "--policy", other)
    assert ended.code == 2 and "two policies are called `calm`" in ended.err


def test_a_rule_that_needs_the_watch_asks_for_it(tmp_path: Path) -> None:
    path = tmp_path / "room.policy"
    path.write_text(READS_PODS)
    ended = policyengine("extender", "--policy", path, "--listen", ":0")
    assert ended.code == 2 and "--kubeconfig" in ended.err and ended.err.count("\n") == 1


def test_a_certificate_that_cannot_be_used_is_named(policy: Path) -> None:
    ended = policyengine("extender", "--policy", policy, "--listen", ":0", "--tls-cert-file", policy)
    assert ended.code == 2 and "calm.policy` cannot be used" in ended.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--client-ca-file=ca"], "--client-ca-file needs --tls-cert-file"),
        (["--client-name=system:kube-scheduler"], "--client-name needs --client-ca-file"),
        (["--authentication=TokenReview"], "TokenReview needs --tls-cert-file, and --kubeconfig or --watch"),
    ],
)
def test_who_may_ask_needs_what_it_is_checked_by(policy: Path, flags: list[str], said: str) -> None:
    ended = policyengine("extender", "--policy", policy, *flags)
    assert ended.code == 2 and said in ended.err
