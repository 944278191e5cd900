"""Suites: tests of a policy in YAML (`*.test.yaml`), valid by `suite.schema.json`, as the steps of in-file tests.

A suite is data from outside: no aliases, no anchors, no tags, bounded size and depth.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from policyengine.checked_yaml import CheckedYaml, CheckedYamlError
from policyengine.cluster.kinds import GIVEN, GIVEN_BESIDE, decode_given, kind_of
from policyengine.cluster.objects import ObjectError
from policyengine.commands.manifests import read_text
from policyengine.commands.policy_files import SUITE
from policyengine.commands.testing.suite_steps import SuiteError, SuiteTest, SuiteValues, fields_of, items_of, span_of
from policyengine.language.diagnostics import Source
from policyengine.language.ir import test_nodes as ir_test
from policyengine.scheduler.messages import Message, ObjectObserved
from policyengine.trials.policy_test import TestedPolicy


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite as written; its tests have a meaning once the policy is known."""

    source: Source
    policy_file: Path
    policy_name: str | None
    root: yaml.MappingNode

    def tested(self, of: TestedPolicy) -> TestedPolicy:
        """The policy with the tests of this suite instead of its own.

        Raises:
            SuiteError: a test names or gives something that does not exist, or has the wrong form.
        """
        tests: dict[str, ir_test.Test] = {}
        objects: dict[str, tuple[Message, ...]] = {}
        root = fields_of(self.root)
        for node in root["tests"].value:
            fields = fields_of(node)
            for case in fields["cases"].value if "cases" in fields else [None]:
                values = SuiteValues(of.policy, of.registry.keys(), case)
                name = _name(values, fields["name"])
                if name in tests:
                    raise values.wrong(fields["name"], f"another test is called `{name}`")
                steps = tuple(SuiteTest(values, root, fields).steps())
                tests[name] = ir_test.Test(name=name, steps=steps, span=span_of(case or fields["name"]))
                objects[name] = tuple(_object(values, one) for one in items_of(fields.get("objects")))
        return replace(of, tests=tuple(tests.values()), suite=self.source.file, objects=objects)


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of suites."""
    text = files("policyengine.commands.testing").joinpath("suite.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def read_suite(path: Path) -> Suite:
    """Read a suite and hold it against the schema.

    Raises:
        SourceError: it cannot be read.
        SuiteError: it is no plain YAML, or not valid.
    """
    text = read_text(path)
    try:
        document = CheckedYaml(text, schema())
    except CheckedYamlError as error:
        raise SuiteError(f"\n`{path}`: ".join(error.sentences)) from None
    named = document.data.get("policy", path.name.removesuffix(SUITE) + ".policy")
    return Suite(Source(str(path), text), path.parent / named, document.data.get("name"), document.root)


def _name(values: SuiteValues, node: yaml.Node) -> str:
    """The test's name; a case that it does not tell apart is named by what it gives."""
    name = values.key(node)
    if values.case and name == node.value:
        name += f" ({', '.join(f'{key} {value}' for key, value in values.case.items())})"
    return name


def _object(values: SuiteValues, node: yaml.Node) -> Message:
    item = values.value(node)
    if item["kind"] not in GIVEN_BESIDE:
        known = ", ".join(GIVEN_BESIDE)
        raise values.wrong(node, f"`{item['kind']}` is no kind that a test gives; there are {known}")
    kind = kind_of(item)
    try:
        return ObjectObserved(kind, decode_given(GIVEN[kind], item))
    except ObjectError as error:
        raise values.wrong(node, str(error)) from None
