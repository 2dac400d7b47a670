"""Tiers of tests, and what every test runs under.

A test without a mark is `fast`. `@pytest.mark.ci` and `@pytest.mark.full` put it into a later tier;
`--tier ci` runs fast and ci, `--tier full` runs all. Of alike cases, `@pytest.mark.share(n)` leaves
the first of every n in `fast`, of the others the first of every n in `ci`, and puts what remains
into `full`; `share(n, ci=m)` leaves the first of every m in `ci` instead, and `share(n, ci=0)` none
of the others. Of cases that are marked `ci`, too, none is in `fast`. This file is the only place
that says so.
"""

from __future__ import annotations

import gc
import getpass
import importlib.util
import os
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

TIERS = {
    "fast": "every promise on small cases: minutes on a laptop",
    "ci": "more cases of each promise, the docs and the wheel: before a change is merged",
    "full": "every case and compiler, thousands of random programs: before a release",
}
EXAMPLES = {"fast": 25, "ci": 50, "full": 2000}
"""Examples that hypothesis draws for a law, unless the law says how many."""
PATIENCE = {"fast": 600, "ci": 900, "full": 7200}
"""Seconds after which a test hangs, on a busy machine too: it fails, and the others go on."""

ROOT = Path(__file__).parent.parent

# Values are verified where they are made, by any test, and by the processes that a test starts.
os.environ["DSFC_CHECK"] = "1"
# Kernels are run by Triton's interpreter; it decides when Triton is first imported.
os.environ.setdefault("TRITON_INTERPRET", "1")
# PyTorch takes an operator that returns its argument for a fault, not for something to warn of.
os.environ.setdefault("TORCHINDUCTOR_ERROR_ON_CUSTOM_OP_ALIASING", "1")
# hypothesis draws constants of the modules that a process has imported, which differ from run to
# run; it parses each of them for that. It leaves out what lies in a folder `test`.
_SCRATCH = Path(tempfile.gettempdir(), f"dsfc-{getpass.getuser()}", "test")
_SCRATCH.mkdir(parents=True, exist_ok=True)
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_SCRATCH))
# Parallel test processes share the cores; each must not start a thread per core.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


# `benchmarks` is importable, without the checkout on the path.
if "benchmarks" not in sys.modules:
    _spec = importlib.util.spec_from_file_location(
        "benchmarks",
        ROOT / "benchmarks" / "__init__.py",
        submodule_search_locations=[str(ROOT / "benchmarks")],
    )
    assert _spec is not None and _spec.loader is not None
    sys.modules["benchmarks"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["benchmarks"])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=list(TIERS), default="fast", help="how much to run")
    parser.addoption(
        "--every-case", action="store_true", help="run what `share` leaves to a later tier, too"
    )
    parser.addoption(
        "--but",
        type=Path,
        metavar="REPORT",
        help="leave out what passed in a JUnit report, but tests that a later tier runs otherwise",
    )


def pytest_configure(config: pytest.Config) -> None:
    for tier, meaning in list(TIERS.items())[1:]:
        config.addinivalue_line("markers", f"{tier}: {meaning}")
    shares = "share(n, ci=m): of alike cases one of n is fast, of others one of m (n; 0: none) ci"
    config.addinivalue_line("markers", shares)
    for tier, count in EXAMPLES.items():
        hypothesis.settings.register_profile(
            tier, max_examples=count, derandomize=True, deadline=None, database=None
        )
    hypothesis.settings.load_profile(config.getoption("--tier"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keeps the garbage collector from what lives as long as the process: modules and tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Lets the interpreter take down at its end what was kept."""
    gc.unfreeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    order = list(TIERS)
    later = order[order.index(config.getoption("--tier")) + 1 :]
    if not config.getoption("--every-case"):
        _keep_shares(items)
    report = config.getoption("--but")
    passed = set() if report is None else set(_passed(report))
    left_out = [
        item
        for item in items
        if any(item.get_closest_marker(tier) for tier in later)
        or (_reported(item) in passed and not _grows(item))
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        away = set(left_out)
        items[:] = [item for item in items if item not in away]
    for item in items:
        item.add_marker(pytest.mark.timeout(PATIENCE[config.getoption("--tier")]))


def _keep_shares(items: list[pytest.Item]) -> None:
    """Marks the cases that `share` leaves to a later tier than the one they are in otherwise."""
    fast, ci = Counter[str](), Counter[str]()
    for item in items:
        share = item.get_closest_marker("share")
        if share is None or item.get_closest_marker("full"):
            continue
        function = item.nodeid.partition("[")[0]
        if not item.get_closest_marker("ci"):
            if fast[function] % share.args[0]:
                item.add_marker(pytest.mark.ci)
            fast[function] += 1
        if item.get_closest_marker("ci"):
            every = share.kwargs.get("ci", share.args[0])
            if every == 0 or ci[function] % every:
                item.add_marker(pytest.mark.full)
            ci[function] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows the seeds that tests drew, those that passed too."""
    seeds = [
        f"{report.nodeid}: {name} {value}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if "seed" in name
    ]
    if seeds:
        terminalreporter.section("seeds drawn in this run")
        terminalreporter.write_line("\n".join(sorted(seeds)))


def _passed(report: Path) -> Iterator[tuple[str, str]]:
    """Class and name of the tests that passed, as the report calls them."""
    for case in ET.parse(report).iter("testcase"):
        if all(case.find(what) is None for what in _NOT_PASSED):
            yield case.attrib["classname"], case.attrib["name"]


_NOT_PASSED = ("failure", "error", "skipped")


def _reported(item: pytest.Item) -> tuple[str, str]:
    """Class and name of a test, as a report calls it."""
    place, bracket, parameters = item.nodeid.partition("[")
    file, *names = place.split("::")
    module = file.removesuffix(".py").replace("/", ".")
    return ".".join((module, *names[:-1])), names[-1] + bracket + parameters


def _grows(item: pytest.Item) -> bool:
    """Whether a test does more in a later tier: it asks for the tier, or draws examples."""
    fixtures = getattr(item, "fixturenames", ())
    return "tier" in fixtures or hasattr(getattr(item, "function", None), "hypothesis")


@pytest.fixture(scope="session")
def tier(request: pytest.FixtureRequest) -> str:
    """The tier of this run, for tests that scale with it."""
    return request.config.getoption("--tier")


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def own_operators() -> Callable[[str, str], str]:
    """Gives the operators of a module's text a namespace that starts with a word.

    PyTorch keeps the first operators of a name, which start the kernels of their own module: a test
    that watches kernels must not meet those of another file of tests.
    """
    return lambda text, word: text.replace('NAMESPACE = "', f'NAMESPACE = "{word}_', 1)


@pytest.fixture(scope="session")
def oracle() -> Callable[[str], ModuleType]:
    """Loads `tests/oracles/<mixer>.py` by the name of the mixer."""

    def load(name: str) -> ModuleType:
        path = ROOT / "tests" / "oracles" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"oracle_{name}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
