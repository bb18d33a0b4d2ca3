"""A plugin of pytest: the tests of another library, with our functions for jax.numpy's.

`nox -s libraries` loads it. Each call runs both functions. A difference between their
results is an error in the test of that library.
"""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np

import dmljax.numpy as dnp

CALLS = collections.Counter()
RUNNING = []  # the functions of ours that run now, of which some call jax.numpy's


def compare(found, expected):
    """Compares the types of two results, and the values outside of a trace."""
    for ours, theirs in zip(jax.tree.leaves(found), expected, strict=True):
        assert jax.typeof(ours) == jax.typeof(theirs)
        if not isinstance(theirs, jax.core.Tracer):
            np.testing.assert_array_equal(ours, theirs)


def replace(module, name):
    theirs = getattr(module, name)
    ours = getattr(dnp, name)

    @functools.wraps(theirs)
    def call(*arguments, **options):
        if RUNNING:
            return theirs(*arguments, **options)
        RUNNING.append(name)
        try:
            found = ours(*arguments, **options)
        except NotImplementedError:  # the message says to use jax.numpy's
            return theirs(*arguments, **options)
        finally:
            RUNNING.pop()
        CALLS[name] += 1
        compare(found, jax.tree.leaves(theirs(*arguments, **options)))
        return found

    setattr(module, name, call)


def pytest_configure():
    """Replaces the functions. The import of this file, as for doctests, does not."""
    for name in dnp.__all__:
        replace(jax.nn if name == "one_hot" else jnp, name)


def pytest_sessionfinish(session):
    if not CALLS:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"calls of dmljax.numpy: {dict(CALLS)}")
