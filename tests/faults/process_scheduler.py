"""`policyengine` as it is, but less patient: `python -m tests.faults.process_scheduler SECONDS run …`.

A watch that is silent for so many seconds counts as broken; a cluster's scheduler waits for two missed bookmarks.
"""

from __future__ import annotations

import sys

from policyengine.commands.main import main
from policyengine.kube.watching.reflector import Reflector

if __name__ == "__main__":
    defaults = Reflector.__init__.__kwdefaults__
    assert defaults is not None
    defaults["stall_after"] = float(sys.argv.pop(1))
    main()
