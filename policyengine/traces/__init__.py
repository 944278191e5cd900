"""Days of other clusters, as their traces tell them, made into recordings.

`mapping` reads any table of comma-separated values by a YAML file that says what its columns mean (`openb.yaml` is
one); `swf` the standard workload format of batch systems; `writing` writes what they found.

Imported by `commands`. Imports `recording` and what is below.
"""
