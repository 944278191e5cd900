"""Log lines: text for people, JSON for collectors, both with what they are about."""

import io
import json
import logging
import re

import pytest

from policyengine.kube.config import process


@pytest.fixture
def logger() -> logging.Logger:
    found = logging.Logger("policyengine.test", logging.DEBUG)
    found.propagate = False
    return found


def said(logger: logging.Logger, form: logging.Formatter) -> str:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(form)
    logger.addHandler(handler)
    logger.info("bound `%s`", "a", extra={"pod": "ns/a", "node": "n1", "hash": "abc"})
    logger.removeHandler(handler)
    return out.getvalue()


def test_text_ends_in_the_fields_that_are_known(logger: logging.Logger) -> None:
    line = said(logger, process.TextLines())
    assert re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO ", line)
    assert line.endswith("INFO    bound `a` pod=ns/a node=n1 hash=abc\n")


def test_json_is_one_object_a_line(logger: logging.Logger) -> None:
    (line,) = said(logger, process.JsonLines()).splitlines()
    found = json.loads(line)
    assert found.pop("time").endswith("+00:00")
    assert found == {
        "level": "info",
        "logger": "policyengine.test",
        "message": "bound `a`",
        "pod": "ns/a",
        "node": "n1",
        "hash": "abc",
    }


def test_an_exception_stays_on_its_line(logger: logging.Logger) -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(process.JsonLines())
    logger.addHandler(handler)
    try:
        raise ValueError("x")
    except ValueError:
        logger.exception("it failed")
    (line,) = out.getvalue().splitlines()
    assert "ValueError: x" in json.loads(line)["exception"]
