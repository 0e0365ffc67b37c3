"""Waiting for a blocking call, and ceasing to."""

from __future__ import annotations

import contextvars
import gc
import threading
import weakref

import pytest

from streamparse.transport.errand import Errand

LIMIT = 10.0


class Result:
    """Something that can be watched going away."""


def fail():
    raise KeyError("k")


def test_results_and_errors():
    errand = Errand()
    assert errand.run(lambda: 5) == 5
    with pytest.raises(KeyError, match="k"):
        errand.run(fail)
    assert errand.run(lambda: None) is None


def test_the_call_sees_the_context():
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(7)
    assert Errand().run(variable.get) == 7


def test_nothing_is_kept():
    errand = Errand()
    found = weakref.ref(errand.run(Result))
    gc.collect()
    assert found() is None


@pytest.mark.parametrize("late_error", [False, True])
def test_abandoned(late_error):
    """The wait ends at once; what the call brings later goes to ``late``, an error of it nowhere."""
    errand = Errand()
    go, ended = threading.Event(), threading.Event()
    brought = []

    def call():
        assert go.wait(LIMIT)
        if late_error:
            ended.set()
            fail()
        return 5

    def late(result):
        brought.append(result)
        ended.set()

    timer = threading.Timer(0.05, errand.abandon)
    timer.start()
    assert errand.run(call, late) is None
    assert not ended.is_set()
    go.set()
    assert ended.wait(LIMIT)
    assert brought == ([] if late_error else [5])
    timer.join()
    assert errand.run(lambda: 1) is None


def test_abandoned_at_the_same_moment():
    """The result goes to one of the two, whoever comes first."""
    for _ in range(300):
        errand = Errand()
        late: list[int] = []
        thread = threading.Thread(target=errand.abandon)
        thread.start()
        got = errand.run(lambda: 5, late.append)
        thread.join()
        for worker in threading.enumerate():
            if worker.name == "streamparse-errand":
                worker.join(LIMIT)
        assert (got, late) in [(5, []), (None, [5]), (None, [])]
