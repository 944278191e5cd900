"""The hash of a policy: SHA-256 of its canonical text with imports, overlays and the values of its parameters.

What else stands in the files does not count, so that editing one policy leaves the others as they are; nor do white
space and the layout of comments. Editing an imported library counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256

from policyengine.language import ir
from policyengine.language.diagnostics import Source
from policyengine.language.format import format_source


def policy_hash(policy: ir.Policy, params: Mapping[str, object]) -> str:
    """The hash in hex. `params`: the values that the policy runs with."""
    texts = [_canonical(source.slice(span)) for source, span in policy.texts]
    values = {name: str(value) for name, value in sorted(params.items())}
    return sha256(json.dumps([texts, values], ensure_ascii=False).encode()).hexdigest()


@lru_cache(maxsize=256)
def _canonical(text: str) -> str:
    """A block in the one style. Blocks without findings come here, and each is a whole file by itself."""
    return format_source(Source("", text))[0]
