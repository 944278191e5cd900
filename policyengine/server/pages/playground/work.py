"""The playground's work, in a process of its own: a question with its texts -> an answer, both as JSON."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from policyengine.compiler.assemble import PluginRegistry
from policyengine.kube.config import process
from policyengine.server.pages.playground import texts
from policyengine.server.pages.playground.evaluation import evaluate
from policyengine.server.pages.playground.tried_cluster import Unusable

if TYPE_CHECKING:
    from policyengine.kube.limited_process import Work

logger = logging.getLogger(__name__)

Json = dict[str, Any]
TOO_LARGE: Final = "this takes more memory than there is for it: shorten the policy, or take a smaller cluster"


def prepared(registry: str, toolchain: str) -> Work:
    """What answers. Both name functions, as `module:function`: of the plugins there are, and of the language server's
    toolchain."""
    process.start_logging("warning", "text")
    plugins: PluginRegistry = pkgutil.resolve_name(registry)()
    answers = _answers(plugins) | (_editing(toolchain) if edits() else {})
    first = texts.start("", plugins)
    for before in ("", first["policy"].replace("weight 1", "weight 2")):
        evaluate(first["policy"], before, first["cluster"], plugins)  # whatever the first question makes once for all
    if "findings" in answers:
        answers["findings"](first)
        answers["complete"](first | {"at": {"line": 4, "character": 17}})
        answers["hover"](first | {"at": {"line": 4, "character": 17}})
    return partial(_answer, answers)


def edits() -> bool:
    """Whether what the language server needs is installed."""
    return all(find_spec(name) is not None for name in ("lsprotocol", "pygls"))


Answer = Callable[[Json], Any]


def _answer(answers: Mapping[str, Answer], asked: Json) -> Json:
    """`{answer}`, or `{unusable}`: a sentence."""
    try:
        return {"answer": answers[asked["ask"]](asked)}
    except Unusable as error:
        return {"unusable": str(error)}
    except MemoryError:
        return {"unusable": TOO_LARGE}
    except Exception as bug:
        logger.exception("the playground's question `%s` could not be answered", asked["ask"])
        return {"unusable": f"this ended in a {type(bug).__name__}, a bug; the server's log says where"}


def _answers(registry: PluginRegistry) -> dict[str, Answer]:
    return {
        "evaluate": lambda asked: evaluate(asked["policy"], asked["before"], asked["cluster"], registry),
        "export": lambda asked: texts.exported(asked["what"], asked["policy"], asked["cluster"], registry),
        "start": lambda asked: texts.start(asked["what"], registry),
        "tests": lambda asked: texts.test_names(asked["policy"], registry),
        "cluster": lambda asked: texts.test_cluster(asked["policy"], asked["what"], registry),
    }


def _editing(toolchain: str) -> dict[str, Answer]:
    from policyengine.server.pages.playground import editing

    tools = editing.toolchain(pkgutil.resolve_name(toolchain)())
    return {
        "findings": lambda asked: editing.findings(tools, asked["policy"]),
        "complete": lambda asked: editing.completions(tools, asked["policy"], asked["at"]),
        "hover": lambda asked: editing.hovered(tools, asked["policy"], asked["at"]),
    }
