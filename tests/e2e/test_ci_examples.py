"""examples/ci: the files are valid for GitHub and GitLab, and their steps do on a repository what the page says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "examples" / "ci"
POLICY = """import "sizes"

policy "batch" {{
  scheduler "batch"
  base filters

  filter "few" {{
    require node.podCount < sizes.few + {most} else "enough"
  }}

  test "an empty node takes a pod" {{
    given node "n" {{ allocatable: {{cpu: 4, memory: 8Gi, pods: 110}} }}
    given pod "p" {{}}
    expect "p" on "n"
  }}
}}
"""
LIBRARY = """library "sizes" {
  let few = 0
}
"""
DAY = """
duration: 10min
policies: [{file: policies/batch.policy}, {file: policies/sizes.policy}]
nodes: [{name: n, count: 2, allocatable: {cpu: 8}}]
pods: [{name: p, count: 6, every: 10s, requests: {cpu: 1}}]
"""
TOOL = """#!/bin/sh
printf '%s\\n' "$0 $*" >> "$CALLS"
"""


def read(name: str) -> Any:
    return yaml.load((CI / name).read_text(encoding="utf-8"), yaml.BaseLoader)


@pytest.mark.parametrize(("name", "schema"), [("github-actions", "github-workflows"), ("gitlab-ci", "gitlab-ci")])
def test_a_file_is_valid_by_the_schema_of_its_service(name: str, schema: str) -> None:
    text = (files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{schema}.json").read_text(encoding="utf-8")
    item = yaml.safe_load((CI / f"{name}.yml").read_text(encoding="utf-8"))
    if True in item:  # YAML 1.1 takes the key `on` for true
        item["on"] = item.pop(True)
    assert [error.message for error in Draft7Validator(json.loads(text)).iter_errors(item)] == []


class Repository:
    """A repository with a policy and a recorded day, on a branch in which the policy is changed."""

    def __init__(self, folder: Path, most: int) -> None:
        self.folder, tools = folder / "repository", folder / "tools"
        self.calls = folder / "calls"
        self.calls.touch()
        tools.mkdir()
        for name in ("pip", "gh", "curl"):
            (tools / name).write_text(TOOL)
        (tools / "policyengine").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m policyengine.commands.main "$@"\n')
        for tool in tools.iterdir():
            tool.chmod(0o755)
        self._env = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "CALLS": str(self.calls),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            **{f"GIT_{who}_{what}": "ci" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        policies = self.folder / "policies"
        policies.mkdir(parents=True)
        (policies / "batch.policy").write_text(POLICY.format(most=9))
        (policies / "sizes.policy").write_text(LIBRARY)
        (self.folder / "day.yaml").write_text(DAY)
        record = "policyengine simulate day.yaml --record recordings/day"
        assert (
            self.run(f"{record} && git init -q -b main && git add . && git commit -qm old && git switch -qc new") == 0
        )
        (policies / "batch.policy").write_text(POLICY.format(most=most))
        (policies / "sizes.policy").write_text(f"/// Used by batch.\n{LIBRARY}")
        (policies / "other.policy").write_text('policy "other" {\n  scheduler "other"\n}\n')
        assert self.run("git add policies && git commit -qm new") == 0

    def run(self, script: str, env: Mapping[str, str] | None = None) -> int:
        """As the services run a step: by bash, which ends at the first command that fails."""
        command = ["bash", "-eo", "pipefail", "-c", script]
        return subprocess.run(command, cwd=self.folder, env={**self._env, **(env or {})}, timeout=120).returncode

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


def github(repository: Repository) -> list[int]:
    """The exit codes of the workflow's steps, after `pip`."""
    values = {"${{ github.base_ref }}": "main", "origin/": "", "${{ github.token }}": "t"}
    values["${{ github.event.pull_request.number }}"] = "7"
    variables: dict[str, str] = {"GITHUB_ENV": str(repository.folder / "env")}
    (repository.folder / "env").touch()
    codes = []
    for step in read("github-actions.yml")["jobs"]["policies"]["steps"]:
        if "run" not in step:
            continue
        variables |= dict(line.split("=", 1) for line in repository.text("env").splitlines())
        env = {}
        for key, value in step.get("env", {}).items():
            for old, new in values.items():
                value = value.replace(old, new)
            env[key] = value
        codes.append(repository.run(step["run"], variables | env))
    return codes


def test_the_workflow_of_github_comments_what_the_change_would_do_and_fails_where_it_is_worse(tmp_path: Path) -> None:
    repository = Repository(tmp_path, most=2)
    codes = github(repository)
    assert codes == [0] * (len(codes) - 1) + [1]
    assert "| waiting | 0 | 2 | worse |" in repository.text("plan.md")
    assert "| batch: few | as before | 2 | 0 → 2 |" in repository.text("plan.md")
    assert repository.text("plan.html").startswith("<!doctype html>")
    assert "gh pr comment 7 --body-file plan.md" in repository.calls.read_text()
    assert json.loads(repository.text("policies.sarif"))["version"] == "2.1.0"


def test_a_change_that_is_no_worse_passes(tmp_path: Path) -> None:
    assert set(github(Repository(tmp_path, most=8))) == {0}


def gitlab(repository: Repository, job: str) -> int:
    item = read("gitlab-ci.yml")
    lines = [*item["default"]["before_script"], *item[job]["script"]]
    env = {name: name.lower() for name in ("CI_API_V4_URL", "CI_PROJECT_ID", "CI_MERGE_REQUEST_IID", "PLAN_TOKEN")}
    return repository.run("\n".join(lines), env | {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "main"})


def test_the_jobs_of_gitlab_do_the_same(tmp_path: Path) -> None:
    repository = Repository(tmp_path, most=2)
    assert gitlab(repository, "policies") == 0
    assert "<testsuites" in repository.text("lint.xml")
    assert gitlab(repository, "plan") == 1
    assert "| waiting | 0 | 2 | worse |" in repository.text("plan.md")
    assert (repository.folder / "plan.html").exists()
    assert "body@plan.md ci_api_v4_url/projects/ci_project_id/merge_requests/ci_merge_request_iid/notes" in (
        repository.calls.read_text()
    )


def test_a_merge_request_that_changes_no_policy_writes_nothing(tmp_path: Path) -> None:
    repository = Repository(tmp_path, most=2)
    assert repository.run("git checkout -q main -- policies && git commit -qm back") == 0
    assert gitlab(repository, "plan") == 0
    assert "curl" not in repository.calls.read_text()
