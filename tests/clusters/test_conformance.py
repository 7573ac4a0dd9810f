"""A slice of the suite that every store passes, on a cluster: each test's queue is on some node of it."""

from tests.conformance import test_line, test_output

for module in (test_line, test_output):
    # With what the tests stand on, their fixtures.
    globals().update({name: thing for name, thing in vars(module).items() if not name.startswith("_")})
