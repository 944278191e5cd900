"""The configuration file: each field right, each field wrong, and every default said."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from policyengine.kube.config import configuration
from policyengine.kube.config.configuration import Configuration, ConfigurationError, read

HEAD = "apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\n"


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        read(HEAD + text, "`c.yaml`")
    return str(caught.value).splitlines()


def test_an_empty_configuration_has_every_field() -> None:
    data = read(HEAD, "x").data
    Draft202012Validator(configuration.schema()).validate(data)
    for section in ("clientConnection", "policies", "leaderElection", "endpoints", "log"):
        assert data[section].keys() == configuration.schema()["$defs"][section]["properties"].keys()


def test_what_is_printed_reads_back_as_the_same() -> None:
    text = HEAD + "clientConnection: {qps: 50}\nextenders:\n- urlPrefix: http://a/b\n  filterVerb: filter\n"
    once = read(text, "x").data
    assert read(yaml.safe_dump(dict(once)), "x").data == once


def fields() -> list[tuple[str, str, Any]]:
    """(section, field, a value that no field of its type takes)."""
    found = []
    for section in ("clientConnection", "policies", "leaderElection", "endpoints", "log"):
        for field, form in configuration.schema()["$defs"][section]["properties"].items():
            wrong: Any = "no" if form.get("type") in ("boolean", "number", "integer", "array", "object") else 7
            found.append((section, field, wrong))
    return found


@pytest.mark.parametrize(("section", "field", "wrong"), fields())
def test_each_field_that_is_wrong_is_told_with_its_path_and_line(section: str, field: str, wrong: Any) -> None:
    (told,) = problems(f"{section}:\n  {field}: {wrong}\n")
    assert told.startswith("`c.yaml`: line 4, column ")
    assert f"`{section}.{field}`" in told


EXTENDER_FIELDS = configuration.schema()["$defs"]["extender"]["properties"]


@pytest.mark.parametrize("field", sorted(EXTENDER_FIELDS))
def test_each_field_of_an_extender_that_is_wrong_is_told(field: str) -> None:
    kind = EXTENDER_FIELDS[field].get("type")
    wrong = "[]" if kind == "string" else "x"
    prefix = "" if field == "urlPrefix" else "urlPrefix: http://a, "
    (told,) = problems(f"extenders:\n- {{{prefix}{field}: {wrong}}}\n")
    assert f"`extenders.0.{field}" in told and "line 4" in told


def test_each_mistake_is_one_line_whatever_is_written() -> None:
    text = "apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\nextenders: [{urlPrefix: 'http://a', "
    with pytest.raises(ConfigurationError) as error:
        read(text + 'httpTimeout: "x\\nINFO forged", "a\\nb": 1}]\n', "c")
    assert len(str(error.value).splitlines()) == 2 and "x\\nINFO forged" in str(error.value)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    told = problems("leaderElection:\n  leaseDuration: soon\n  leesDuration: 3s\nlog: {format: xml}\n")
    assert len(told) == 3
    assert any("`soon` is no duration such as `15s`" in line for line in told)
    assert any("line 5" in line and "did you mean `leaseDuration`?" in line for line in told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("leaderElection: {leaseDuration: 5s}\n", "leaseDuration (5s) must be above renewDeadline (10s)"),
        ("leaderElection: {retryPeriod: 9s}\n", "must be above 1.2 x retryPeriod"),
        ("leaderElection: {retryPeriod: 0s}\n", "the lease lasts a second or more, the other times are above zero"),
        ("leaderElection: {leaseDuration: 15500ms}\n", "leaseDuration (15.5s) must be whole seconds"),
        ("clientConnection: {qps: .nan}\n", "`clientConnection.qps` is no finite number"),
        ("clientConnection: {requestTimeout: 0s}\n", "must be above zero"),
        ('policies: {selector: "!!"}\n', "`!!` is no label selector"),
        ("policies: {namespace: Kube}\n", "`Kube` is no name of a namespace"),
        ('policies: {allow: [{schedulerNames: ["*-a"]}]}\n', "`*-a` is no name, or the beginning of one and `*`"),
        ('policies: {allow: [{annotations: ["a*"]}]}\n', "`a*` is no annotation key, `DOMAIN/*` or `*`"),
        ("policies: {allow: [{form: [a]}]}\n", "`policies.allow.0.form` is unknown; did you mean `from`?"),
        ("leaderElection: {resourceName: A b}\n", "`A b` is no name of a Lease"),
        ('endpoints: {address: "10259"}\n', "`10259` is no [HOST]:PORT"),
        ("extenders: [{urlPrefix: ftp://a}]\n", "`ftp://a` is no URL"),
        ("extenders: [{urlPrefix: http://a, httpTimeout: 0s}]\n", "`extenders.0.httpTimeout` must be above zero"),
        ('endpoints: {address: "0.0.0.0:9"}\n', "shows /debug to other machines"),
        ('endpoints: {address: ":9"}\n', "`every address` shows /debug"),
        ('endpoints: {address: "127.0.0.1:70000"}\n', "`70000` is no port"),
        ("endpoints: {clientCAFile: a}\n", "`endpoints.clientCAFile` needs `tlsCertFile`"),
        ("endpoints: {clientNames: [a]}\n", "`endpoints.clientNames` needs `clientCAFile`"),
        ("endpoints: {tlsPrivateKeyFile: k}\n", "needs `tlsCertFile`"),
        ("extenders: [{urlPrefix: http://a, prioritizeVerb: p}]\n", "weight` must be positive"),
        # Two such would come to more than 64 bits hold, and end the scheduler.
        (
            "extenders: [{urlPrefix: http://a, prioritizeVerb: p, weight: 92233720368547758}]\n",
            "`extenders.0.weight`: 92233720368547758 is greater than the maximum of 2147483647",
        ),
        (
            "extenders: [{urlPrefix: http://a, bindVerb: b}, {urlPrefix: http://b, bindVerb: b}]\n",
            "`extenders.1.bindVerb`: only one extender binds",
        ),
        (
            "extenders: [{urlPrefix: http://a, managedResources: [{name: x.io/a}, {name: x.io/a}]}]\n",
            "`x.io/a` is managed by two extenders",
        ),
    ],
)
def test_fields_that_are_wrong_together_are_told(text: str, told: str) -> None:
    (line,) = problems(text)
    assert told in line and "line 3" in line


@pytest.mark.parametrize(
    "selector",
    ["a", "!a", "a=b", "a==", "a != b", "x.io/a in (b, c)", "a notin (,)", " a=b , !c ", "policyengine.io/policy=true"],
)
def test_every_label_selector_is_taken(selector: str) -> None:
    assert read(f'{HEAD}policies: {{selector: "{selector}"}}\n', "x").data["policies"]["selector"] == selector


@pytest.mark.parametrize("selector", ["!!", "=b", "a=b c", "a in b", "a in (b", "a,", ",", "a=b=c", "-a", "a>1"])
def test_what_is_no_label_selector_is_told(selector: str) -> None:
    assert "is no label selector" in problems(f'policies: {{selector: "{selector}"}}\n')[0]


def test_a_lease_that_is_not_used_may_have_any_times() -> None:
    assert read(HEAD + "leaderElection: {leaderElect: false, leaseDuration: 5s}\n", "x").lease is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not one YAML document"),
        ("kind: Pod\napiVersion: v1\n", "`policyengine.io/v1` was expected"),
        ("a: &x 1\n", "alias"),
        ("apiVersion: policyengine.io/v1\napiVersion: x\n", "is there twice"),
        ("[", "is not YAML"),
    ],
)
def test_what_is_no_configuration_is_said_to_be_none(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        read(text, "x")


def test_flags_beat_the_file_field_by_field(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(HEAD + "policies: {namespace: a, params: {x: 1, y: 2}}\nclientConnection: {qps: 5}\n")
    found = configuration.load(path, {"policies": {"namespace": "b", "params": {"x": "3"}}})
    assert found.data["policies"]["namespace"] == "b"
    assert found.data["policies"]["params"] == {"x": "3", "y": 2}
    assert found.data["clientConnection"]["qps"] == 5


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: no such file"):
        configuration.load(tmp_path / "none.yaml", {})


def test_the_lease_is_as_kube_scheduler_has_it() -> None:
    lease = read(HEAD, "x").lease
    assert lease is not None
    assert (lease.lease_duration, lease.renew_deadline, lease.retry_period) == (15.0, 10.0, 2.0)


@settings(max_examples=50)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["apiVersion", "kind", "extenders", "log", "leaderElection", "urlPrefix", "leaseDuration", "weight", "address"]
    ), inner, max_size=4)
), max_leaves=12))  # fmt: skip
def test_no_document_is_anything_but_a_configuration_or_an_error(document: Any) -> None:
    try:
        found = read(json.dumps(document), "x")
    except ConfigurationError:
        return
    assert isinstance(found, Configuration)
