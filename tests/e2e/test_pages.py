"""What `deploy/` installs answers: `kubectl policyengine` comes to the pod through a real API server's proxy."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.cluster import pod, policy_map
from tests.e2e.installed import POD, Installed, installation

ROLE = "policyengine-user"
HELD = 'policy "crew" { scheduler "policy-scheduler" gang "g" when true { key: "crew" min: 3 timeout: 60s } }'


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with installation(tmp_path_factory.mktemp("installed")) as made:
        yield made


def bind(installed: Installed) -> None:
    jane = "--serviceaccount=kube-system:jane"
    installed.admin("create", "rolebinding", "jane", f"--role={ROLE}", jane, check=False)


def unbind(installed: Installed) -> None:
    installed.admin("delete", "rolebinding", "jane", "--ignore-not-found", check=False)
    installed.until("cannot be looked up", "status")


def test_without_the_role_one_sentence_says_which_it_is(installed: Installed) -> None:
    unbind(installed)
    ended = installed.ask("status")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert 'cannot list resource "leases"' in ended.err
    assert ended.err.endswith(f"have the Role `{ROLE}` bound to you\n")


def test_with_it_every_page_comes(installed: Installed) -> None:
    bind(installed)
    installed.admin.apply(policy_map("crew", HELD))
    installed.until("ConfigMap policyengine-policies/crew", "status")
    installed.admin("apply", "-n", "default", "-f", "-", stdin=json.dumps(pod("one", crew="a")))
    shown = installed.until("default/one", "queue")
    assert "gang g: 1 of 3 members exist" in shown.out
    assert installed.ask("-n", "default", "why", "one").out.startswith("default/one  held; policy crew ")
    assert installed.ask("quota").out == "no policy has a quota\n"
    assert installed.ask("rollout").out == "no policy is tried\n"
    (page,) = json.loads(installed.ask("status", "-o", "json").out)
    lease = installed.admin("get", "lease", "policyengine", "-o", "jsonpath={.spec.holderIdentity}")
    assert page["servedBy"] == {"identity": lease, "leads": True}


def test_a_token_of_the_reader_opens_no_page_that_costs_much_and_a_persons_own_opens_none(installed: Installed) -> None:
    bind(installed)
    installed.until("leader", "status")
    said = installed.admin(
        "get", "lease", "policyengine", "-o", r"jsonpath={.metadata.annotations.policyengine\.io/pages}"
    )
    namespace, _, where = said.partition("/")
    assert (namespace, where.rpartition(":")[0]) == ("kube-system", f"https:{POD}")
    proxy = f"/api/v1/namespaces/{namespace}/pods/{where}/proxy"
    assert "You must be logged in" in installed.admin("get", "--raw", f"{proxy}/debug/queue", check=False)
    assert installed.admin("get", "--raw", f"{proxy}/livez") == "ok"
    server = yaml.safe_load(installed.jane.read_text())["clusters"][0]["cluster"]["server"]
    mine = yaml.safe_load(installed.admin.kubeconfig.read_text())["users"][0]["user"]["token"]
    theirs = installed.admin("create", "token", "policyengine-reader", "--audience=policyengine").strip()
    for token, path, answer in (
        (theirs, "/debug/queue", '"count"'),
        (theirs, "/debug/cache", "may not get `/debug/cache`"),
        (theirs, "/debug/cache/compare", "may not get"),
        (theirs, "/metrics", "may not get `/metrics`"),
        (mine, "/debug/queue", "the token is not known"),
    ):
        command = ["curl", "-sk", "-H", f"Authorization: Bearer {mine}"]
        sent = [*command, "-H", f"Policyengine-Authorization: Bearer {token}", f"{server}{proxy}{path}"]
        assert answer in subprocess.run(sent, capture_output=True, text=True, timeout=30, check=True).stdout


def test_a_scheduler_that_died_is_said_to_be_unreachable(installed: Installed) -> None:
    bind(installed)
    installed.until("leader", "status")
    installed.process.kill()
    installed.process.wait()
    ended = installed.ask("status")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith("error: the scheduler of lease `kube-system/policyengine` cannot be reached: ")
    assert "connection refused" in ended.err
