"""What every test run needs: the repository root on the path (`from tests.builders import make_pod`), and byte code for
the processes that tests start: without it each would compile the whole package. No property has a deadline: a machine
that does other things is no counterexample. Garbage is looked for seldom: a worker keeps all modules and tests."""

import os
import sys
from pathlib import Path

from hypothesis import settings

from policyengine.seldom_collected import collect_seldom

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
collect_seldom()
