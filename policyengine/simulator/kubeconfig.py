"""The kubeconfig of a sandbox, for the user's own kubectl."""

from __future__ import annotations

import json
import os
from pathlib import Path

NAME = "policyengine-sandbox"


def kubeconfig(url: str, token: str = "") -> dict[str, object]:
    """One cluster, one user, one context. A server with TLS has a certificate of its own making, on loopback."""
    cluster: dict[str, object] = {"server": url}
    if url.startswith("https://"):
        cluster["insecure-skip-tls-verify"] = True
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token} if token else {}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }


def write_kubeconfig(path: Path, content: dict[str, object]) -> None:
    """Write it for the owner alone, as kubectl does; JSON is YAML. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2) + "\n")
