# Types of the public names; written by tests/support/public_stub.py.

from dynid.report.report import write_report as write_report
