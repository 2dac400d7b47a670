"""`dsfc doctor`: what this machine can run."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsfc.cli.options import format_option

if TYPE_CHECKING:
    from dsfc.emit.backend import Fault

COMPILE = ("lark", "sympy", "numpy", "networkx", "jinja2", "click")
PROVE = ("python-flint",)

_SECONDS = 120
_ASK_TORCH = """\
import json, torch
count = torch.cuda.device_count() if torch.cuda.is_available() else 0
found = [torch.cuda.get_device_properties(k) for k in range(count)]
print(json.dumps({
    "version": torch.__version__,
    "threads": torch.get_num_threads(),
    "platform": "hip" if torch.version.hip else "cuda",
    "devices": [[p.name, p.major, p.minor, p.total_memory] for p in found],
}))
"""
_ASK_TRITON = "import json, triton; print(json.dumps({'version': triton.__version__}))"


class Outcome(StrEnum):
    """How something stands."""

    OK = "ok"
    MISSING = "missing"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that this machine can do, or not.

    Attributes:
        outcome: how it stands.
        what: the thing.
        figure: versions, devices; or what is wrong and what would mend it.
    """

    outcome: Outcome
    what: str
    figure: str


@click.command(short_help="Report what this machine can run.")
@click.argument("modules", nargs=-1, metavar="[MODULE]...")
@format_option("the findings")
@click.pass_context
def doctor(ctx: click.Context, modules: tuple[str, ...], form: str) -> None:
    """Report what this machine can do with specs and modules, and its known faults.

    For a MODULE, describes it and says whether its kernels run here; the module is read, not run.
    Exit code 1 if an installed part does not work. PyTorch and Triton are queried in processes of
    their own, so that a broken one is reported too.
    """
    findings: list[Finding] = []
    for finding in chain(_findings(), _modules(modules, findings)):
        findings.append(finding)
        if form == "human":
            click.echo(_human(finding))
    if form == "json":
        body = {"format": 1, "findings": [asdict(finding) for finding in findings]}
        click.echo(json.dumps(body, ensure_ascii=False, indent=2))
    ctx.exit(1 if any(finding.outcome is Outcome.FAULT for finding in findings) else 0)


def _findings() -> Iterator[Finding]:
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield Finding(Outcome.OK, "dsfc", f"{version('dsfc')}; {machine}")
    yield _packages("compile", COMPILE)
    yield _packages("prove", PROVE)
    torch = yield from _asked("run modules", "torch", _ASK_TORCH)
    if torch is None:
        return
    yield from _devices(torch)
    yield from _probed()
    if not sys.platform.startswith("linux"):
        yield Finding(Outcome.MISSING, "kernels", "Triton runs on Linux alone; torch runs instead")
        return
    triton = yield from _asked("kernels", "triton", _ASK_TRITON)
    if triton is not None:
        yield from _faults(torch, triton["version"])


def _modules(paths: tuple[str, ...], machine: list[Finding]) -> Iterator[Finding]:
    """How emitted modules stand on a machine, of which everything is found by then.

    Raises:
        DiagnosticError: E-FILE, where dsfc did not write one.
    """
    from dsfc.cli.info import read_module
    from dsfc.emit.backend import backend_names, load_backend

    there = {finding.what for finding in machine if finding.outcome is Outcome.OK}
    faulty = {finding.what for finding in machine if finding.outcome is Outcome.FAULT}
    needs = {name: load_backend(name).needs for name in backend_names()}
    for path in paths:
        module = read_module(Path(path))
        edited = ", edited since" if module.edited else ""
        said = f"{module.file}: {module.backend} backend, dsfc {module.dsfc}{edited}"
        if "run modules" not in there:
            yield Finding(Outcome.MISSING, "module", f"{said}; it needs torch")
        elif not needs.get(module.backend):
            yield Finding(Outcome.OK, "module", f"{said}; modes {', '.join(module.modes)}")
        else:
            outcome, runs = _kernels(needs[module.backend], there, faulty)
            yield Finding(outcome, "module", f"{said}; {runs}")


def _kernels(
    needs: Mapping[str, tuple[str, ...]], there: set[str], faulty: set[str]
) -> tuple[Outcome, str]:
    """Whether the kernels of a module run on a machine, in words.

    Args:
        needs: device → what they need there.
        there: what works.
        faulty: what does not.
    """
    run = [d for d, names in needs.items() if set(names) <= there and not faulty & set(names)]
    if run:
        where = f" on the {' and the '.join(run)}" if len(needs) > 1 else ""
        return Outcome.OK, f"its kernels run{where}"
    if any(set(names) <= there for names in needs.values()):
        return Outcome.MISSING, "torch runs where its kernels would meet the fault above"
    lacking = (" and ".join(sorted(set(names) - there)) for names in needs.values())
    return Outcome.MISSING, f"its kernels lack {' or '.join(lacking)}, torch runs instead"


def _packages(what: str, names: tuple[str, ...]) -> Finding:
    """What of dsfc's own requirements is there."""
    present, missing = [], []
    for name in names:
        try:
            present.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        figure = f"{', '.join(missing)} not installed; install dsfc again"
        return Finding(Outcome.FAULT, what, figure)
    return Finding(Outcome.OK, what, ", ".join(present))


def _asked(
    what: str, package: str, program: str
) -> Generator[Finding, None, dict[str, Any] | None]:
    """Asks a package in a process of its own; returns its answer, None where it has none."""
    try:
        version(package)
    except PackageNotFoundError:
        extra = f'pip install "dsfc[{package}]"'
        yield Finding(Outcome.MISSING, what, f"{package} is not installed: {extra}")
        return None
    answer, said = _answer(program)
    if answer is None:
        yield Finding(Outcome.FAULT, what, f"{package} cannot be imported: {said}")
        return None
    threads = f", {answer['threads']} threads" if "threads" in answer else ""
    yield Finding(Outcome.OK, what, f"{package} {answer['version']}{threads}")
    return answer


def _answer(program: str) -> tuple[dict[str, Any] | None, str]:
    """The JSON that a program prints in a process of its own; None, and why, where it has none."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=_SECONDS
        )
        if done.returncode == 0:
            return json.loads(done.stdout), ""
        return None, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        return None, f"no answer in {_SECONDS} s"
    except ValueError:
        return None, "no answer that can be read"


def _probed() -> Iterator[Finding]:
    """How the tools stand that modules of some backends run."""
    from dsfc.emit.backend import backend_names, load_backend

    probes = (probe for name in backend_names() for probe in load_backend(name).probes)
    for what, program in {probe.what: probe.program for probe in probes}.items():
        answer, said = _answer(program)
        if answer is None:
            yield Finding(Outcome.FAULT, what, said)
        else:
            yield Finding(Outcome(answer["outcome"]), what, answer["figure"])


def _devices(torch: dict[str, Any]) -> Iterator[Finding]:
    if not torch["devices"]:
        yield Finding(Outcome.MISSING, "GPU", "no CUDA or ROCm device; modules run on the CPU")
    for name, major, minor, memory in torch["devices"]:
        figure = f"{name}, {torch['platform']} {major}.{minor}, {memory / 2**30:.0f} GiB"
        yield Finding(Outcome.OK, "GPU", figure)


def _faults(torch: dict[str, Any], triton: str) -> Iterator[Finding]:
    """What is known of this version of Triton on these devices, and in its interpreter."""
    from dsfc.emit.backend import backend_names, load_backend

    numpy = version("numpy")
    if _number("3.6") <= _number(triton) < _number("3.9") and _number(numpy) >= _number("2.4"):
        figure = f"Triton {triton} cannot interpret kernels with NumPy {numpy}; below 2.4 it can"
        yield Finding(Outcome.FAULT, "interpreter", figure)
    faults = (fault for name in backend_names() for fault in load_backend(name).faults)
    known = list(dict.fromkeys(faults))
    for _, major, minor, _ in torch["devices"]:
        for fault in known:
            if applies(fault, torch["platform"], 10 * major + minor, triton):
                mend = f"; Triton {fault.fixed} has it mended" if fault.fixed else ""
                figure = f"{fault.what} ({fault.source}){mend}; torch runs where it matters"
                yield Finding(Outcome.FAULT, "kernels", figure)


def applies(fault: Fault, where: str, architecture: int, triton: str) -> bool:
    """Returns whether a device with a version of Triton has a fault."""
    if fault.platform != where or architecture not in fault.architectures:
        return False
    late = bool(fault.fixed) and _number(triton) >= _number(fault.fixed)
    return _number(triton) >= _number(fault.first) and not late


def _number(text: str) -> tuple[int, ...]:
    """The release of a version: 3.7.1 of 3.7.1+git1234."""
    release = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, release[0].split("."))) if release else ()


_COLOURS = {Outcome.OK: "green", Outcome.MISSING: "yellow", Outcome.FAULT: "red"}


def _human(finding: Finding) -> str:
    from dsfc.diagnostics.render import printable

    outcome = click.style(f"{finding.outcome:<7}", fg=_COLOURS[finding.outcome])
    return f"{outcome}  {finding.what:<11}  {printable(finding.figure)}"
