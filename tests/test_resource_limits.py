"""Work is ended that takes too long or too much, in any thread, and nothing else is."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc import resource_limits
from dsfc.api import pipeline
from dsfc.api.compile import compile_spec
from dsfc.api.decide import equivalent
from dsfc.api.pipeline import load
from dsfc.diagnostics.report import Diagnostic, DiagnosticError
from dsfc.limits import Limits
from dsfc.prover import equivalent as equivalent_module
from dsfc.prover import subsumes as subsumes_module
from dsfc.prover.subsumes import Kinds
from dsfc.prover.subsumes_report import kinds_json, kinds_report
from dsfc.prover.verdict import Refuted
from dsfc.resource_limits import Expired, Watch, bounded, elsewhere

BRIEF, SHORT = Limits(seconds=0.3), Limits(seconds=0.5)
pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True, scope="module")
def started() -> None:
    """What is imported and prepared once does not count."""
    for name in ("s6", "gla", "linear_attn", "retnet"):
        assert load(name).module()


def endless(*_: object) -> None:
    while True:
        pass


def waiting(limits: Limits) -> None:
    """Waits in short steps, between which it can be ended."""
    with bounded("wait", limits):
        for _ in range(200):
            time.sleep(0.05)


def diagnostic(work: Callable[[], object]) -> Diagnostic:
    """The one diagnostic that a call raises."""
    with pytest.raises(DiagnosticError) as raised:
        work()
    (only,) = raised.value.diagnostics
    return only


def test_a_stage_without_end_is_a_diagnostic_at_its_mixer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "derive", endless)
    found = diagnostic(lambda: load("s6", limits=BRIEF).plan)
    assert str(found).startswith("E-LIMIT: time to derive s6: more, at most 0.3 s allowed")
    assert found.span.text == "s6"


def test_reading_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "parse", endless)
    assert diagnostic(lambda: load("s6", limits=BRIEF)).code == "E-LIMIT"


def test_compiling_has_bounds_and_writes_nothing_then(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pipeline, "emit", endless)
    found = diagnostic(lambda: compile_spec("s6", out=tmp_path, limits=BRIEF))
    assert "time to compile s6" in found.message and not list(tmp_path.iterdir())


def test_a_comparison_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsfc.api.decide.kinds", endless)
    a, b = (load(name, limits=BRIEF) for name in ("s6", "gla"))
    for it in (a, b):
        assert it.system
    assert "time to compare s6 and gla" in diagnostic(lambda: equivalent(a, b)).message


@pytest.mark.ci
def test_other_threads_have_bounds_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "classify", endless)
    codes: list[str] = []

    def work() -> None:
        codes.append(diagnostic(lambda: load("s6", limits=BRIEF).structure).code)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == ["E-LIMIT"] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="no bound on memory there")
def test_memory_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def hoard(_: object) -> None:
        held = []
        while True:
            held.append(b"x" * 2**20)  # zeros would take no memory
            time.sleep(0.001)

    monkeypatch.setattr(pipeline, "classify", hoard)
    found = diagnostic(lambda: load("s6", limits=Limits(memory=64 * 2**20)).structure)
    assert "memory to classify s6: more, at most 64 MiB allowed" in found.message


def test_of_nested_bounds_the_outer_ones_count() -> None:
    def work() -> None:
        with bounded("work", BRIEF), bounded("a part of it"):
            endless()

    assert "time to work" in diagnostic(work).message


def test_who_bounds_elsewhere_is_not_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        resource_limits.Watch, "watching", lambda self: pytest.fail("a second watch")
    )
    with elsewhere():
        assert load("s6").plan


@pytest.mark.ci
def test_nothing_is_raised_when_the_work_is_done() -> None:
    """Bounds that are as long as the work: it ends or expires, and what comes after is quiet."""
    ended = expired = 0
    for k in range(400):
        last = time.thread_time() + 1e-5 * (k % 20)
        try:
            with Watch(1e-4).watching():
                while time.thread_time() < last:
                    pass
            ended += 1
        except Expired:
            expired += 1
        for _ in range(200):  # where a late exception would come
            pass
    assert ended + expired == 400 and ended > 0


def test_what_python_drops_is_raised_again(capfd: pytest.CaptureFixture[str]) -> None:
    """Python drops what is raised in a callback of a weak reference, and goes on."""

    class Thing:
        pass

    dropped = []

    def spin(_: object) -> None:
        last = time.thread_time() + 2
        try:
            while time.thread_time() < last:
                pass
        except Expired:
            dropped.append(1)
            raise

    def work() -> None:
        with bounded("work", Limits(seconds=0.01)):
            thing = Thing()
            kept = weakref.ref(thing, spin)
            del thing
            endless(kept)

    before = sys.unraisablehook
    assert "time to work" in diagnostic(work).message and dropped == [1]
    assert capfd.readouterr().err == "" and sys.unraisablehook is before


def test_what_others_cannot_raise_is_told_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def __del__(self) -> None:
            raise ZeroDivisionError

    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append(what.exc_type))
    with bounded("work"):
        Failing()
    assert told == [ZeroDivisionError]


def test_bounds_may_be_infinite() -> None:
    with bounded("work", Limits(seconds=float("inf"), memory=2**60)):
        assert load("s6").plan


# --- what was found stands ------------------------------------------------------------------------


def test_a_verdict_stands_when_what_comes_after_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subsumes_module, "subsumes", endless)
    found = equivalent(load("linear_attn", limits=SHORT), load("retnet"))
    assert isinstance(found.equal, Refuted) and found.forth is found.back is None
    assert found.left == "whether one is a case of the other"
    told = kinds_report(found, "linear_attn", "retnet")
    assert told == f"time was up before more was examined: {found.left}\n"
    assert kinds_json(found) == {"left": found.left}


def test_a_verdict_stands_when_conditions_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalent_module, "candidates", endless)
    heard: list[Kinds] = []
    found = equivalent(
        load("linear_attn", limits=SHORT), load("retnet"), conditions=True, tell=heard.append
    )
    assert isinstance(found.equal, Refuted) and heard == [found]
    assert found.left == "conditions under which they are equal"


def test_a_limit_before_any_verdict_says_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalent_module, "close", endless)
    monkeypatch.setattr(equivalent_module, "refute", lambda *_: None)
    found = diagnostic(lambda: equivalent(load("s6", limits=BRIEF), load("gla")))
    assert found.message == "time to compare s6 and gla: more, at most 0.3 s allowed"
    tried = "tried until then: one text up to names, short sequences, a proof over the values of"
    assert found.hint is not None and found.hint.startswith(tried)


def test_work_that_waits_says_that_it_did_not_work() -> None:
    """A busy machine gives little of the processor: the spec is then not at fault."""
    problem = diagnostic(lambda: waiting(Limits(seconds=0.2)))
    assert str(problem).startswith(
        "E-LIMIT: time by the clock to wait: more, at most 1.2 s allowed"
    )
    assert problem.hint is not None and "the processor for less than 0.2 s" in problem.hint


def test_the_clock_on_the_wall_counts_where_it_is_asked_for() -> None:
    """Sleep takes no processor time."""
    limits = Limits(seconds=1e-3, elapsed=0.2)
    with bounded("work", limits):
        sum(range(500_000))  # more than a thousandth of a second of work
    with pytest.raises(DiagnosticError, match=r"time to work: more, at most 0\.2 s allowed"):
        with bounded("work", limits):
            for _ in range(6000):
                time.sleep(0.01)
