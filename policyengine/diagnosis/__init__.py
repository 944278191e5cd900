"""Why a pod is where it is: `explain`, what-if questions, and the smallest changes that would place it.

Commands and the Python API import it; it stands above `trials` and below `kube`. It is pure: the cluster comes as
objects, the time as an argument.
"""
