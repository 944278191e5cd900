"""The annotator: what nodes really use, measured elsewhere, as annotations that policies read."""
