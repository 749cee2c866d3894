"""Speed of our kernels and of other libraries, measured in one run: ``python -m benchmarks.speed``.

Each peer has one file with a class with a ``name`` and a method ``measure(case)``, which returns the seconds of each
workload that the peer supports and raises `NotInstalled` if it cannot run here. To add a peer, write such a file and
list its class in `benchmarks.speed.suite`.
"""
