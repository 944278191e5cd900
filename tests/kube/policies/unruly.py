"""A registry whose import makes proofs do what no text should be able to: the text's first word says what."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from policyengine.compiler.assemble import PluginRegistry
from policyengine.kube.policies import compiling, proving
from policyengine.kube.policies.compiling import compiled
from policyengine.kube.policies.precedence import Compiled
from policyengine.plugins.registry import IN_TREE


def registry() -> PluginRegistry:
    """The in-tree plugins."""
    main = sys.modules["__main__"]
    if main.__spec__ is not None and main.__spec__.name.endswith(".limited_process"):
        proving.compiled = _unruly  # in the process that proves, and nowhere else
    return IN_TREE


def _unruly(data: Mapping[str, str], *more: Any) -> Compiled:
    match next(iter(data.values())).split():
        case ["burns"]:
            while True:
                pass
        case ["sleeps"]:
            time.sleep(60)
        case ["hoards"]:
            compiling.compile_files = lambda *_: bytearray(1 << 30)  # type: ignore[assignment,return-value]  # there too
        case ["is", "killed"]:
            os.kill(os.getpid(), signal.SIGKILL)
        case ["hoards", "bit", "by", "bit"]:
            compiling.compile_files = lambda *_: [bytes(400) for _ in itertools.count()]  # type: ignore[assignment,return-value]
        case ["hoards", "and", end]:
            _unruly({"": end}, b"1" * (120 << 20))
        case ["crashes"]:
            os.kill(os.getpid(), signal.SIGSEGV)
        case ["exits"]:
            os._exit(3)
        case ["kills", "the", "server"]:
            os.killpg(0, signal.SIGKILL)
        case _:
            pass
    return compiled(data, *more)
