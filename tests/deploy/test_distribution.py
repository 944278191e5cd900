"""What is given away: the wheel and the sdist work alone, and the files beside them say what is in them."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from deploy.provenance import LOCKS, provenance
from tests.deploy.manifests import ROOT


def run(*arguments: str, cwd: Path, path: Path | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(path or "")}
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    run("-m", "hatchling", "build", "-t", "sdist", "-d", str(folder), cwd=ROOT, path=ROOT)
    (packed,) = folder.glob("policyengine_scheduler-*.tar.gz")
    shutil.unpack_archive(packed, folder)
    return folder / packed.name.removesuffix(".tar.gz")


def test_a_wheel_that_the_sdist_makes_shows_the_demo_alone(sdist: Path, tmp_path: Path) -> None:
    run("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=sdist, path=sdist)
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    shown = run("-m", "policyengine.commands.main", "demo", cwd=tmp_path, path=installed)
    assert "by policies/riya.policy" in shown


def test_the_sdist_brings_its_tests(sdist: Path) -> None:
    run("-m", "pytest", "tests/language/test_diagnostics.py", "tests/test_quantity.py", cwd=sdist, path=sdist)


def test_the_bill_of_materials_names_what_is_installed(tmp_path: Path) -> None:
    """The installed are a few of ours: what each package brings is read at length."""
    image, out = tmp_path / "image", tmp_path / "sbom.json"
    venv.create(image)
    (installed,) = image.glob("lib/python*/site-packages")
    for name in ("lark", "numpy", "aiohttp"):
        (found,) = Path(sysconfig.get_path("purelib")).glob(f"{name}-*.dist-info")
        shutil.copytree(found, installed / found.name)
    given = ("environment", str(image), "--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible")
    run("-m", "cyclonedx_py", *given, "-o", str(out), cwd=ROOT)
    told = json.loads(out.read_text())
    assert told["bomFormat"] == "CycloneDX"
    assert told["metadata"]["component"]["name"] == "policyengine-scheduler"
    assert {"lark", "numpy", "aiohttp"} == {one["name"] for one in told["components"]}


def checkout(folder: Path) -> Path:
    for lock in LOCKS:
        (folder / lock).parent.mkdir(exist_ok=True)
        (folder / lock).write_text(lock)
    who = ("-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false")
    for arguments in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "all")):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)
    return folder


def test_the_provenance_names_the_commit_the_locks_and_the_digest_of_each_file(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    made = root / "dist"
    made.mkdir()
    (made / "a.whl").write_bytes(b"wheel")
    told = provenance(root, made)
    assert told["subject"] == [{"name": "a.whl", "digest": {"sha256": sha256(b"wheel").hexdigest()}}]
    commit, *locks = told["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert len(commit["digest"]["gitCommit"]) == 40
    assert [lock["name"] for lock in locks] == list(LOCKS)


def test_what_no_commit_describes_is_not_released(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    (root / LOCKS[0]).write_text("changed")
    with pytest.raises(SystemExit, match=r"requirements.lock is changed and in no commit; commit it first"):
        provenance(root, root)


def test_the_image_starts_from_a_digest_and_ends_without_pip() -> None:
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    stages = [line.split() for line in lines if line.startswith("FROM")]
    bases = {stage[1] for stage in stages} - {stage[3] for stage in stages if len(stage) > 3} - {"scratch"}
    assert len(bases) == 1 and "@sha256:" in bases.pop()
    assert stages[-1] == ["FROM", "scratch"]


def test_what_makes_every_process_slow_is_left_out_of_the_lock() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for name in about["tool"]["uv"]["exclude-dependencies"]:
        assert f"\n{name}==" not in (ROOT / "requirements.lock").read_text()


def test_what_forecasts_is_locked_as_it_is_tested() -> None:
    pins = {name: re.findall(r"^\S+==\S+", (ROOT / name).read_text(), re.MULTILINE) for name in LOCKS}
    beside = pins["deploy/forecast.lock"]
    assert any(pin.startswith("statsmodels==") for pin in beside)
    assert set(beside) <= set(pins["requirements.lock"])
    assert not {pin.partition("==")[0] for pin in beside} & {
        pin.partition("==")[0] for pin in pins["deploy/requirements.lock"]
    }
