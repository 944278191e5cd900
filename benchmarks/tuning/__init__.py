"""What `policyengine tune` finds, and how long it takes.

`python -m benchmarks.tuning FOLDER` is the worked example of docs/tuning.md: `policies/gpu-packing.policy` on the
traces "openb", beside what no order of placement exceeds. `hour` is `python -m benchmarks tuning`: candidates a minute.
"""
