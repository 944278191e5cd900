"""The columnar face of the cluster: one place to import the table and its parts from."""

from __future__ import annotations

from policyengine.cluster.inverted import ImageIndex, PortIndex
from policyengine.cluster.journal import ABSENT, EncodedColumn, Interner, Journal, Rows, stable_hash
from policyengine.cluster.node_table import NodeTable

__all__ = [
    "ABSENT",
    "EncodedColumn",
    "ImageIndex",
    "Interner",
    "Journal",
    "NodeTable",
    "PortIndex",
    "Rows",
    "stable_hash",
]
