"""Puts the repository root on the path, so that tests share builders: `from tests.builders import make_pod`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
