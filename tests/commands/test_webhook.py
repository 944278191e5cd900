"""`policyengine webhook`: what keeps it from starting is said, and exits with 2."""

from pathlib import Path

from tests.commands.process import policyengine


def test_without_a_certificate_it_does_not_start(tmp_path: Path) -> None:
    assert policyengine("webhook").code == 2
    absent = tmp_path / "tls.crt"
    ended = policyengine("webhook", "--tls-cert-file", absent)
    assert ended.code == 2
    assert f"certificate `{absent}` cannot be used: no such file or directory" in ended.err


def test_an_address_without_a_port_is_told(tmp_path: Path) -> None:
    ended = policyengine("webhook", "--listen", "0.0.0.0", "--tls-cert-file", tmp_path)
    assert ended.code == 2
    assert "`0.0.0.0`, which names no port" in ended.err


def test_the_schedulers_configuration_is_read_before_anything_is_asked(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\npolicies: {allow: none}\n")
    ended = policyengine("webhook", "--tls-secret", "a/b", "--config", config)
    assert ended.code == 2
    assert "line 3, column 19: `policies.allow`" in ended.err
