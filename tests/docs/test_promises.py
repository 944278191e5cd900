"""What the pages about the language, its lint and security promise, each with the test that proves it."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

TESTS = Path(__file__).resolve().parents[1]
PROMISES: dict[str, dict[str, Any]] = yaml.safe_load((TESTS / "docs" / "promises.yaml").read_text())
MADE = re.compile(r"```.*?```|<!-- made from.*?end of what is made -->", re.DOTALL)


def pieces(page: str) -> list[str]:
    """The paragraphs, rows of tables and items of lists of a page, without its examples and what a program made."""
    text = MADE.sub("", (TESTS.parent / "docs" / page).read_text())
    found = []
    for block in re.split(r"\n\s*\n", text):
        lines = "\n".join(line for line in block.strip().splitlines() if not re.match(r"#|\|[\s|:-]*\|$", line))
        found += re.split(r"\n(?=\| |- )", lines)
    return [" ".join(one.split()) for one in found if one.strip()]


@pytest.mark.parametrize("page", PROMISES)
def test_every_paragraph_row_and_item_of_the_page_has_its_promises_named(page: str) -> None:
    assert [one for one in pieces(page) if not any(words in one for words in PROMISES[page])] == []


@pytest.mark.parametrize("page", PROMISES)
def test_every_promise_is_one_of_the_pages(page: str) -> None:
    whole = pieces(page)
    assert [words for words in PROMISES[page] if not any(words in one for one in whole)] == []


@cache
def functions(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS / path).read_text())
    return frozenset(one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


def named(page: str) -> list[str]:
    proofs = [proof for proof in PROMISES[page].values() if proof != "-"]
    return sorted({test for proof in proofs for test in ([proof] if isinstance(proof, str) else proof)})


@pytest.mark.parametrize("page", PROMISES)
def test_every_test_that_is_named_exists(page: str) -> None:
    assert [test for test in named(page) if test.partition("::")[2] not in functions(test.partition("::")[0])] == []
