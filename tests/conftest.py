"""What all tests share: how long hypothesis searches, and where the shared cases are.

Profiles (``HYPOTHESIS_PROFILE``; ``ci`` where ``CI`` is set, else ``default``):

``default``  few examples, new ones in each run, failures remembered in ``.hypothesis``: for the next thousand runs
``ci``       the same examples in every run: a red run is about the commit in hand
``fuzz``     `make fuzz`: every property is run again and again until its share of ``FUZZ_SECONDS`` is used up. Where
             ``CI`` is set, once, with many examples that are always the same. Hunting is for people; a gate is not
             the place to meet a bug that was there before.
"""

from __future__ import annotations

import os
import time
from functools import wraps
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

IN_CI = bool(os.environ.get("CI"))
PROFILE = os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if IN_CI else "default")
FUZZ_SECONDS = float(os.environ.get("FUZZ_SECONDS", "120"))

# No deadline for one example: it measures the machine. That decoding is linear is tested on its own, and a hang is
# caught by pytest-timeout.
settings.register_profile("default", max_examples=60, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, database=None, print_blob=True)
if IN_CI:
    settings.register_profile("fuzz", settings.get_profile("ci"), max_examples=200)
else:
    settings.register_profile("fuzz", max_examples=200, deadline=None, print_blob=True)
settings.load_profile(PROFILE)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function):
    """Under the fuzz profile, run a property in rounds until its share of the time is used up."""
    if PROFILE == "fuzz" and not IN_CI and is_hypothesis_test(pyfuncitem.obj):
        share = FUZZ_SECONDS / len(pyfuncitem.session.items)
        pyfuncitem.obj = _in_rounds(pyfuncitem.obj, share)
    return (yield)


def _in_rounds(test, seconds):
    """``test``, again and again for so many seconds, once at least. Each round draws new examples."""

    @wraps(test)
    def rounds(**arguments):
        end = time.monotonic() + seconds
        test(**arguments)
        while time.monotonic() < end:
            test(**arguments)

    return rounds


def shared(*parts: str) -> Path:
    """A path in the cases and recordings that the project's repositories share, ``shared("cases", "types.jsonl")``.

    They lie beside the checkout, in ``../shared``; ``STREAMPARSE_SHARED`` names another place. Whoever has a checkout
    alone lacks them: the test, or the module that asks while it is being collected, is then skipped and says so. A
    place that was named outright has to exist.
    """
    named = os.environ.get("STREAMPARSE_SHARED")
    root = Path(named) if named else ROOT.parent / "shared"
    path = root.joinpath(*parts)
    if path.exists():
        return path
    if named:
        raise FileNotFoundError(f"{path} does not exist (STREAMPARSE_SHARED={named})")
    if root.exists():
        raise FileNotFoundError(f"{path} does not exist")
    reason = f"no shared cases: {root} does not exist (STREAMPARSE_SHARED names another place)"
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture(name="shared", scope="session")
def shared_fixture():
    """``shared``, for tests that ask for it as a fixture."""
    return shared
