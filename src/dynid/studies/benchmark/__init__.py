"""Our kernels beside those of others, measured in one run: ``python -m dynid.studies.benchmark``.

One file per peer; each has a class with a ``name`` and a method ``measure(case)`` that returns the seconds of each
workload it has an answer for, and raises `NotInstalled` where it cannot run here. To add one, write such a file and
list its class in `dynid.studies.benchmark.suite`.
"""
