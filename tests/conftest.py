"""What every test run needs: the repository root on the path (`from tests.builders import make_pod`), and byte code for
the processes that tests start: without it each would compile the whole package."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
