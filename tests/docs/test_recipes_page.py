"""docs/recipes.md: each policy lints without a finding, stands as `fmt` writes it, and its tests see all of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from policyengine.commands.main import cli
from policyengine.policy_compiler import compile_text
from tests.commands.process import ROOT

TEXT = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))
POLICY = re.compile(r"^```policy\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize(
    "command",
    [("lint", "--fail-level", "info"), ("fmt", "--check"), ("test", "--coverage", "--fail-under", "100")],
    ids=lambda command: command[0],
)
def test_a_recipe_is_a_policy_without_findings_whose_tests_see_all_of_it(
    name: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    (text,) = POLICY.findall(SECTIONS[name])
    path = tmp_path / "recipe.policy"
    path.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(cli, [*command, str(path)])
    assert result.exit_code == 0, result.output


MODEL = 'nodes.filter(n, n.labels[?"nvidia.com/gpu.product"] == pod.nodeSelector[?"nvidia.com/gpu.product"])'
NIGHT = 'require now.getHours("Europe/Berlin") >= 20 || now.getHours("Europe/Berlin") < 6'
ZONE = 'require in_zone < 1 else "zone {node.zone} has a member already"'
SAFE = '.orValue(!("example.com/maintenance" in node.annotations))'


@pytest.mark.parametrize(
    ("name", "said", "stands", "written"),
    [
        ("GPU packing", MODEL, "= nodes.", f"= {MODEL}."),
        ("Databases", ZONE, "require on_node", f"{ZONE} require on_node"),
        ("Maintenance windows", NIGHT, "require starts", f"{NIGHT} require starts"),
        ("Maintenance windows", SAFE, ".orValue(true)", SAFE),
        (
            "Training gangs",
            "podGroup.?minMember.orValue(1)",
            'toInt(pod.annotations[?"example.com/workers"]).orValue(1)',
            "podGroup.?minMember.orValue(1)",
        ),
    ],
)
def test_what_a_recipe_says_to_write_fits_where_it_belongs(name: str, said: str, stands: str, written: str) -> None:
    (text,) = POLICY.findall(SECTIONS[name])
    assert stands in text
    assert f"`{said}`" in " ".join(SECTIONS[name].split())
    found = compile_text(text.replace(stands, written), "docs/recipes.md").diagnostics
    assert [one.message for one in found if one.severity.name == "ERROR"] == []


def test_all_recipes_fit_into_one_policy() -> None:
    members = [text.split("\n", 1)[1].rpartition("}")[0] for text in POLICY.findall(TEXT)]
    joined = re.sub(r'^  scheduler ".+"$', "", "\n".join(members), flags=re.MULTILINE)
    found = compile_text(f'policy "all" {{ {joined} }}', "docs/recipes.md").diagnostics
    assert [one.message for one in found if one.severity.name == "ERROR"] == []


def test_the_table_on_top_leads_to_each_recipe() -> None:
    assert re.findall(r"\| \[(.+?)\]\(#", TEXT) == list(SECTIONS)


def test_two_recipes_serve_two_scheduler_names() -> None:
    names = re.findall(r'^  scheduler "(.+)"$', TEXT, re.MULTILINE)
    assert len(set(names)) == len(SECTIONS)
