"""Gives dsfc texts and certificates that nobody would write, and says what came of them.

    python -P tests/campaigns/fuzz.py --count 1000 [--seed N] [--seconds S] [--out FILE]
    python -P tests/campaigns/fuzz.py --merge FILE FILE … --out FILE

Seeds are `seed`, `seed + 1`, … Without `--seed` one is drawn and printed. Each input must be taken,
or refused by diagnostics that have a code and a place and can be shown in every format, within the
ten seconds of processor time of a command and one GiB of memory, and nothing may be written. Those
that are refused because the time is over are counted apart. Processes of their own run them, some
hundred inputs each. What breaks a promise is told with its seed, by the place where it broke;
`--keep` takes one input of each. `--out` adds the run to the figures in a file as one more share,
and `--merge` adds files up, so that a campaign can be made of several runs, side by side or one
after another. Exit code 1 where something was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import reduce
from itertools import pairwise
from pathlib import Path
from random import SystemRandom
from types import FrameType
from typing import Any

os.environ["DSFC_CHECK"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent))

from fuzz_inputs import KINDS, certificates, one, specs
from shares import joined, share, source_hash

from dsfc.api.check import checked
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.diagnostics.render import render_all, render_short, to_json
from dsfc.diagnostics.report import Diagnostic, DiagnosticError
from dsfc.diagnostics.sarif import to_sarif
from dsfc.language_server.complete import complete
from dsfc.language_server.document import Document, document
from dsfc.language_server.edits import fixes, formatted
from dsfc.language_server.highlight import highlight
from dsfc.language_server.hints import hints
from dsfc.language_server.hover import hover
from dsfc.language_server.lookup import definitions
from dsfc.language_server.references import references
from dsfc.language_server.rename import Refused, rename
from dsfc.language_server.signature import signature
from dsfc.language_server.symbols import symbols
from dsfc.limits import DEFAULT_LIMITS
from dsfc.mixer.library import Library
from dsfc.resource_limits import bounded
from dsfc.source import NOWHERE, Source
from dsfc.syntax.format import format_spec
from dsfc.syntax.parse import parse
from dsfc.syntax.read import decoded
from dsfc.trusted.check import check
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.schema import OtherFormat

SECONDS, MEMORY = 1.5 * DEFAULT_LIMITS.seconds, 1 << 30
_EACH = 500
"""Inputs of one process."""
_PLACE = Place(Path("fuzz.dsf"), shipped=True)  # bases are looked up among the shipped specs alone
_MIXERS = 3
"""Mixers of one text that are compiled."""


class TooLong(BaseException):
    """The input took its time."""


@dataclass(frozen=True)
class Ran:
    """What came of one input.

    Attributes:
        seed: of the input.
        kind: of the input.
        outcome: `accepted`, `refused` or the promise that was broken.
        codes: of the diagnostics.
        where: the exception and the innermost line of dsfc, where a promise was broken.
        seconds: of processor time.
        megabytes: of memory of the process, at most, so far.
    """

    seed: int
    kind: str
    outcome: str
    codes: tuple[str, ...] = ()
    where: str = ""
    seconds: float = 0.0
    megabytes: int = 0

    @property
    def broken(self) -> bool:
        """Whether a promise was broken."""
        return self.outcome not in ("accepted", "refused")


# One input


def ran(seed: int) -> Ran:
    """Returns what came of the input of one seed, in this process."""
    kind, data = one(seed)
    began = time.process_time()
    try:
        with bounded("take it"):  # as on the command line
            outcome, codes = held(kind, data)
        where = ""
    except DiagnosticError as e:
        (limit,) = e.diagnostics
        outcome, codes, where = "refused", (f"{limit.code} {limit.message.split()[0]}",), ""
    except TooLong as e:
        outcome, codes, where = "too long", (), _where(e)
    except MemoryError as e:
        outcome, codes, where = "too much memory", (), _where(e)
    except Exception as e:
        outcome, codes, where = "internal error", (), _where(e)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return Ran(seed, kind, outcome, codes, where, time.process_time() - began, peak)


def held(kind: str, data: bytes) -> tuple[str, tuple[str, ...]]:
    """Holds one input to the promises; returns the outcome and the codes."""
    if kind == "editor dialogue":
        return _edited(*json.loads(data))
    if "certificate" in kind:
        try:
            check(data.decode())
        except UnicodeDecodeError:
            return "refused", ("not text",)
        except (Rejected, OtherFormat) as e:
            assert str(e).strip()
            return "refused", (type(e).__name__,)
        return "accepted", ()
    try:
        _compiled(data)
    except DiagnosticError as e:
        return "refused", tuple(sorted({shown(it) for it in e.diagnostics}))
    return "accepted", ()


def _compiled(data: bytes) -> None:
    """What `check`, `fmt` and `compile` do with a text, but for reading and writing files."""
    source = decoded(data[: DEFAULT_LIMITS.bytes + 1], "fuzz.dsf")
    spec = parse(source)
    some = len(data) % 8 == 0  # the form and the claims take time; some are enough
    if some:
        assert parse(Source("fuzz.dsf", format_spec(spec))) == spec, "the form is another spec"
    text = SpecText(_PLACE, spec)
    refused: list[Diagnostic] = []
    for name in dict.fromkeys(text.mixers[:_MIXERS]):
        try:
            text.compilation(name).module("torch")
        except DiagnosticError as e:
            refused += e.diagnostics
    if not text.mixers or some:
        refused += [it for it in checked(text, "fuzz.dsf").diagnostics if it.severity == "error"]
    if refused:
        raise DiagnosticError(refused)


def _edited(text: str, requests: list[tuple[str, int, int, str]]) -> tuple[str, tuple[str, ...]]:
    """Answers what an editor asks of a text that it changes; returns the outcome and the codes."""
    library = Library()
    it = document(Source("fuzz.dsf", text), library)
    codes: set[str] = set()
    for request, start, end, word in requests:
        text = it.source.text
        at = min(start, len(text))
        to = min(end, len(text))
        match request:
            case "edit":
                it = document(Source("fuzz.dsf", text[:at] + word + text[to:]), library, it)
                codes |= {shown(d) for d in it.diagnostics}
            case "complete":
                assert all(c.label for c in complete(it, at))
            case "hover":
                hover(it, at)
            case "definitions":
                assert all(0 <= s.start <= s.end for s in definitions(it, at))
            case "rename":
                with suppress(Refused):
                    rename(it, at, word)
            case "format":
                formatted(it)
            case "fix":
                fixes(it, at, to)
            case _:
                _show(it, at, to)
    return ("refused" if codes else "accepted"), tuple(sorted(codes))


def _show(it: Document, at: int, to: int) -> None:
    """All that an editor shows of a text, whatever is wrong with it, lies in the text."""
    words = [word.span for word in highlight(it)]
    assert all(a.end <= b.start for a, b in pairwise(words))
    assert all("\n" not in span.text for span in words)
    for symbol in symbols(it):
        for child in (symbol, *symbol.children):
            assert symbol.span.start <= child.span.start <= child.place.start
            assert child.place.end <= child.span.end <= symbol.span.end <= len(it.source.text)
    assert all(at <= hint.offset <= to for hint in hints(it, at, to))
    assert all(0 <= span.start < span.end for span in references(it, at))
    calls = signature(it, at)
    assert calls is None or all(one.label for one in calls.signatures)


def shown(it: Diagnostic) -> str:
    """Shows a diagnostic in every format; returns its code."""
    assert re.fullmatch(r"[A-Z]-[A-Z-]+", it.code) and it.message.strip()
    assert it.span is not NOWHERE, "no place"
    assert 0 <= it.span.start <= it.span.end <= len(it.span.source.text), "a place outside"
    short = render_short(it)
    assert "\n" not in short and "\x1b" not in short and "\0" not in short
    json.loads(to_json([it]))
    json.loads(to_sarif([it]))
    assert render_all([it], colour=False).isprintable() or "\n" in render_all([it])
    return it.code


def _where(error: BaseException) -> str:
    """The type of an exception and the innermost line of dsfc that it came through."""
    frames = [
        f"{Path(f.filename).parent.name}/{Path(f.filename).name}:{f.name}"
        for f in traceback.extract_tb(error.__traceback__)
        if "/dsfc/" in f.filename or "/backends/" in f.filename or f.name == "shown"
    ]
    return f"{type(error).__name__} at {frames[-1] if frames else '?'}: {str(error)[:120]}"


# Many


def campaign(seeds: Iterable[int], until: float = float("inf")) -> Iterator[Ran]:
    """Runs inputs, some hundred in each process; one that ends a process is told, and passed."""
    specs(), certificates()  # made once, for all processes, like what the stages load when used
    _compiled(specs()[0].encode())
    left = list(seeds)
    while left and time.monotonic() < until:
        done = 0
        for it in _in_a_process(left[:_EACH]):
            done += 1
            yield it
        if done < len(left[:_EACH]):
            yield Ran(left[done], one(left[done])[0], "the process died")
            done += 1
        left = left[done:]


def _in_a_process(seeds: list[int]) -> Iterator[Ran]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "w", encoding="utf-8") as out:
            _guard()
            for seed in seeds:
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                it = ran(seed)
                signal.setitimer(signal.ITIMER_PROF, 0)
                print(json.dumps(asdict(it)), file=out, flush=True)
        os._exit(0)
    os.close(write)
    try:
        with os.fdopen(read, encoding="utf-8") as lines:
            while select.select([lines], [], [], 12 * SECONDS)[0] and (line := lines.readline()):
                found = json.loads(line)
                yield Ran(**{**found, "codes": tuple(found["codes"])})
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _guard() -> None:
    """Bounds memory, ends what takes too long, and refuses to write: in a process of its own."""
    sys.stderr = open(os.devnull, "w")
    resident = int(Path("/proc/self/statm").read_bytes().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (resident + MEMORY, resident + MEMORY))

    def expired(number: int, frame: FrameType | None) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, expired)
    sys.addaudithook(_no_writing)


CHANGES = ("os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink",
           "os.truncate", "os.system", "subprocess.Popen", "os.posix_spawn", "os.exec",
           "socket.connect")  # fmt: skip


def _no_writing(event: str, arguments: tuple[Any, ...]) -> None:
    if event in CHANGES:
        raise AssertionError(f"{event} {arguments!r:.100}")
    if event == "open" and isinstance(arguments[2], int):
        if arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise AssertionError(f"writes {arguments[0]!r:.100}")


_EXTREMES = 5
"""How many of the slowest and largest inputs are kept."""


@dataclass
class Figures:
    """The figures of one run, as JSON."""

    seed: int
    started: float = field(default_factory=time.monotonic)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    codes: Counter[str] = field(default_factory=Counter)
    broken: dict[str, list[int]] = field(default_factory=dict)
    slowest: list[tuple[float, int]] = field(default_factory=list)
    largest: list[tuple[int, int]] = field(default_factory=list)

    def add(self, it: Ran) -> None:
        """Counts what came of one input."""
        self.outcomes[it.kind, it.outcome] += 1
        self.seconds[it.kind] = self.seconds.get(it.kind, 0) + it.seconds
        self.codes.update(it.codes)
        self.slowest = _most([*self.slowest, (round(it.seconds, 2), it.seed)])
        if it.megabytes not in dict(self.largest):  # a process only grows: who took it there
            self.largest = _most([*self.largest, (it.megabytes, it.seed)])
        if it.broken:
            self.broken.setdefault(f"{it.outcome}: {it.where}", []).append(it.seed)

    def to_json(self) -> dict[str, Any]:
        """Returns the figures."""
        outcomes = {k: {o: n for (kind, o), n in sorted(self.outcomes.items()) if kind == k}
                    for k in KINDS}  # fmt: skip
        count = self.outcomes.total()
        return {
            "shares": [share(self.seed, count, time.monotonic() - self.started)],
            "broken": sum(map(len, self.broken.values())),
            "outcomes": outcomes,
            "seconds": {kind: round(seconds, 1) for kind, seconds in self.seconds.items()},
            "out_of_time": self.codes["E-LIMIT time"],
            "codes": dict(self.codes.most_common()),
            "slowest": self.slowest,
            "largest": self.largest,
            "where": {where: seeds[:5] for where, seeds in sorted(self.broken.items())},
        }


def _most(measured: list[Any]) -> list[Any]:
    return sorted(measured, reverse=True)[:_EXTREMES]


def merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Returns the figures of two campaigns that share no seed as those of one.

    Raises:
        ValueError: they share a seed.
    """
    shares = joined(a["shares"], b["shares"])
    codes = Counter(a["codes"]) + Counter(b["codes"])
    where = (*a["where"], *b["where"])
    return {
        "shares": shares,
        "broken": a["broken"] + b["broken"],
        "outcomes": {
            kind: dict(Counter(a["outcomes"].get(kind, {})) + Counter(b["outcomes"].get(kind, {})))
            for kind in dict.fromkeys((*a["outcomes"], *b["outcomes"]))
        },
        "seconds": {
            kind: round(a["seconds"].get(kind, 0) + b["seconds"].get(kind, 0), 1)
            for kind in dict.fromkeys((*a["seconds"], *b["seconds"]))
        },
        "out_of_time": a["out_of_time"] + b["out_of_time"],
        "codes": dict(codes.most_common()),
        "slowest": _most([list(it) for it in (*a["slowest"], *b["slowest"])]),
        "largest": _most([list(it) for it in (*a["largest"], *b["largest"])]),
        "where": {w: [*a["where"].get(w, ()), *b["where"].get(w, ())][:5] for w in sorted(where)},
    }


def main() -> int:
    """Runs a campaign from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="end earlier, after so many"
    )
    parser.add_argument("--out", type=Path, help="add the figures to a file, as JSON")
    parser.add_argument("--keep", type=Path, help="folder for one input of each kind of fault")
    parser.add_argument("--merge", type=Path, nargs="+", help="add figures up; run nothing")
    words = parser.parse_args()
    before = [json.loads(file.read_text("utf-8")) for file in words.merge or ()]
    if words.out is not None and words.out.exists():
        before.insert(0, json.loads(words.out.read_text("utf-8")))
    if words.merge:
        _write(words.out, reduce(merged, before))
        return 0
    source_hash()  # of the source that runs now: it may change meanwhile
    seed = SystemRandom().randrange(10**9) if words.seed is None else words.seed
    print(f"seed {seed}", flush=True)
    figures = Figures(seed)

    def save() -> None:
        if words.out is not None:
            _write(words.out, reduce(merged, [*before, figures.to_json()]))

    for it in campaign(range(seed, seed + words.count), time.monotonic() + words.seconds):
        new = it.broken and f"{it.outcome}: {it.where}" not in figures.broken
        figures.add(it)
        if new:
            print(f"{it.seed} ({it.kind}): {it.outcome}: {it.where}", flush=True)
            if words.keep is not None:
                words.keep.mkdir(exist_ok=True, parents=True)
                (words.keep / f"fuzz_{it.seed}").write_bytes(one(it.seed)[1])
        if figures.outcomes.total() % 5000 == 0:
            save()
    save()
    print(json.dumps(figures.to_json(), indent=1, ensure_ascii=False))
    return 1 if figures.broken else 0


def _write(out: Path, figures: dict[str, Any]) -> None:
    draft = out.with_name(f"{out.name}.part")
    draft.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
    draft.replace(out)


if __name__ == "__main__":
    sys.exit(main())
