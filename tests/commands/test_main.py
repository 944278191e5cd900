import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from policyengine.commands import main
from policyengine.version import __version__
from tests.commands.process import ROOT, policyengine


def test_help_lists_every_command_without_importing_what_costs_time() -> None:
    code = (
        "import sys; sys.argv = ['policyengine', '--help']\n"
        "from policyengine.commands.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'aiohttp', 'kubernetes', 'lark', 'rich', 'msgspec'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    for command in main.COMMANDS:
        assert f"  {command} " in done.stdout


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_numpy_starts_no_threads_of_its_own() -> None:
    code = "import policyengine.commands.main, numpy, os; print(len(os.listdir('/proc/self/task')))"
    free = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=free, check=True)
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize("command", sorted(main.COMMANDS))
def test_every_command_has_a_help_of_its_own(command: str) -> None:
    ended = policyengine(command, "--help")
    assert ended.code == 0
    assert "Usage:" in ended.out


def test_every_command_is_run_by_a_test() -> None:
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py") if file != Path(__file__)]
    assert [one for one in main.COMMANDS if not any(f'"{one}"' in text for text in texts)] == []


def test_every_module_with_a_command_is_in_the_table() -> None:
    for file in Path(main.__file__).parent.glob("*.py"):
        declares = "\n@click.command()\n" in file.read_text(encoding="utf-8")
        assert not declares or file.stem in main.COMMANDS, file


def test_the_version_is_told() -> None:
    assert __version__ in policyengine("--version").out


@pytest.mark.parametrize("arguments", [["nonsense"], ["run", "--nonsense"], ["sandbox", "--nodes", "many"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    ended = policyengine(*arguments)
    assert ended.code == 2
    assert ended.err


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("explian", "no command is called `explian`; did you mean `explain`?"),
        ("simulat", "did you mean `simulate`?"),
        ("nonsense", "no command is called `nonsense`; there are annotate, completion, config, "),
        ("a\x1b[2J", "no command is called `a\\x1b[2J`; "),
    ],
)
def test_a_misspelt_command_is_told_with_the_one_that_was_meant(written: str, told: str) -> None:
    ended = policyengine(written)
    assert ended.code == 2
    assert told in ended.err


@pytest.mark.parametrize("command", ["convert", "explain", "fmt", "lint", "simulate", "test"])
def test_every_command_with_several_forms_takes_the_form_by_one_flag(command: str) -> None:
    assert "-o, --output" in policyengine(command, "--help").out


@pytest.mark.parametrize(("command", "older"), [("lint", "--format"), ("test", "--format"), ("convert", "--to")])
def test_the_older_flags_for_the_form_go_on_to_hold(command: str, older: str, tmp_path: Path) -> None:
    file = tmp_path / "a.policy"
    file.write_text('policy "p" { scheduler "p" test "t" { given node "a" given pod "q" expect "q" on "a" } }')
    form = "scheduling-policy" if command == "convert" else "json"
    assert policyengine(command, older, form, file) == policyengine(command, "-o", form, file)


@pytest.mark.parametrize("name", sorted(main.EXIT_CODES))
def test_an_error_with_an_exit_code_is_there_by_the_name_it_is_known_by(name: str) -> None:
    module, _, kind = name.rpartition(".")
    error = getattr(import_module(module), kind)
    assert issubclass(error, Exception)
    assert f"{error.__module__}.{error.__qualname__}" == name


RECORDED = "tests/recording/golden/1-world.recording"


@pytest.mark.parametrize("arguments", [("config",), ("replay", RECORDED, "queue")])  # written by click, and by rich
def test_a_reader_that_goes_away_is_no_verdict(arguments: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    started = [sys.executable, "-m", "policyengine.commands.main", *arguments]
    done = subprocess.run(started, stdout=write, stderr=subprocess.PIPE, cwd=ROOT, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (main.CLOSED_PIPE, b"")


def test_an_error_nobody_expected_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(main.cli, "main", fail)
    with pytest.raises(RuntimeError):
        main.main([])
