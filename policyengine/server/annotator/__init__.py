"""The annotator: what nodes really use, measured by Prometheus or metrics.k8s.io, as annotations that policies read.

`commands.annotate` imports it. It imports `kube.http`, the decoding of `cluster`, and nothing else of `server`.
"""
