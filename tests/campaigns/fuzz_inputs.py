"""Texts and certificates that nobody would write: a seed gives a kind and the bytes.

Texts are random bytes, shipped specs and random mixers with changes, derivations of the grammar
itself, and texts that are extreme in one thing or two. Certificates are such of `dsfc equiv`,
changed as values and as bytes, or with parts of others. Sessions are a text and what an editor
asks of the language server while the text changes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from dsfc.api.locate import locate, shipped_names
from dsfc.api.pipeline import load
from dsfc.prover.subsumes import kinds
from dsfc.prover.verdict import Conditionally, Proved, Refuted
from dsfc.syntax.letters import GREEK
from dsfc.trusted.check import write

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "syntax"))

from random_texts import Drawn, random_text
from spec_writer import random_mixer

TESTS = Path(__file__).resolve().parent.parent
PAIRS = (
    ("attention", "post", "as_state"),
    ("attention", "as_state", "eta_gauge"),
    ("attention", "ratio", "ratio_of_states"),
    ("attention", "as_state", "swapped"),
    ("attention", "post", "post"),
    ("attention", "post", "eta_late"),
)
"""Mixers of `tests/prover/pairs` whose certificates are changed: they are found in a moment."""

CONDITIONAL = ("s6", "linear_attn")
"""Shipped mixers that are equal under conditions or not at all."""

WORDS = (
    *("mixer", "modifier", "dims", "input", "param", "buffer", "state", "const", "use", "claim"),
    *("extends", "heads", "on", "when", "complex", "unit", "positive", "backward", "stable"),
    *("sum[j ≤ i](", "prod[j < i](", "fir[t](", "sum[n](", "exp(", "softplus(", "Re(", "cplx("),
    *("[i-1]", "[i+1]", "[j]", "[i]", "·", "⊗", "×", "->", "~", "=", "==", "≤", "<=", "^", "|"),
    *("(", ")", "[", "]", "{", "}", ",", ";", ":", '"', "#", "\n", "\\", "'", "$", "@", "\0"),
    *("iota", "first", "y", "i", "j", "u", "d", "0", "1", "1/2", "-1", "1e64", "1e-64", "9^9"),
)
ODD = (
    *("\ufeff", "\u202e", "\u200b", "\u2028", "\u0085", "\x1b[31m", "\x7f", "\r", "\f", "\v"),
    *("é", "e\u0301", "ℝ", "𝔘", "Λ", "ƛ", "\u0430", "🙂", "\U0010ffff", "\ufdd0", "½", "²", "٣"),
    *("ﬁ", "ß", "İ", "ǆ", "\u0345", "µ", "μ", "Ω", "\u2126", "∙", "⨂", "−", "\u00a0", "\u3000"),
)
NUMBERS = (
    *("0", "00", "1e0", "0.0", "1e999", "1e-999", "9" * 18, "9" * 19, "9" * 4000, "0." + "0" * 60),
    *("1_000", "0x10", "1e", ".5", "5.", "1/0", "0/0", "2^64", "2^65", "9^9^9", "10^(10^10)"),
)


def one(seed: int) -> tuple[str, bytes]:
    """Returns the kind and the bytes of an input; the same seed gives the same."""
    random = Random(seed)
    (kind,) = random.choices(list(KINDS), [weight for weight, _ in KINDS.values()])
    return kind, KINDS[kind][1](random)[:200_000]


@cache
def specs() -> tuple[str, ...]:
    """The texts of the shipped specs, and of the specs of pairs."""
    shipped = [locate(name).file for name in shipped_names()]
    pairs = sorted((TESTS / "prover" / "pairs").glob("*.dsf"))
    return tuple(path.read_text(encoding="utf-8") for path in (*shipped, *pairs))


@cache
def certificates() -> tuple[str, ...]:
    """The texts of some certificates of `dsfc equiv`."""
    pairs = [
        [load(TESTS / "prover" / "pairs" / f"{file}.dsf", name).system for name in names]
        for file, *names in PAIRS
    ]
    pairs.append([load(name).system for name in CONDITIONAL])
    out = []
    for a, b in pairs:
        verdict = kinds(a, b).equal
        if isinstance(verdict, Proved | Refuted | Conditionally):
            out.append(write(verdict.certificate))
    return tuple(out)


# Texts


def noise(random: Random) -> bytes:
    """Bytes, or characters, of no meaning."""
    size = random.choice((0, 1, 3, 20, 200, 3000))
    match random.randrange(4):
        case 0:
            return random.randbytes(size)
        case 1:
            return "".join(chr(random.randrange(32, 127)) for _ in range(size)).encode()
        case 2:
            points = random.choice((random.randrange(0x3000), random.randrange(0x110000)))
            text = "".join(chr(points + k) for k in range(size % 300) if points + k < 0x110000)
            return text.encode("utf-8", "surrogatepass")
    pieces = random.choices((*WORDS, *ODD, *NUMBERS), k=size % 400)
    return random.choice(("", " ")).join(pieces).encode()


def changed_spec(random: Random) -> bytes:
    """A shipped spec with some changes."""
    return _changed(random.choice(specs()), random)


def changed_mixer(random: Random) -> bytes:
    """A random mixer, which is well typed, with few changes or none."""
    return _changed(random_mixer(random.randrange(10**6)), random, most=3, least=0)


def derived(random: Random) -> bytes:
    """A text of the grammar, with few changes or none."""
    text = random_text(random.randrange(10**9), Drawn())
    return _changed(text, random, most=2, least=0)


def extreme(random: Random) -> bytes:
    """A text that is extreme in one thing or in two, of any size, sometimes with changes."""
    text = random.choice(EXTREMES)(random, _size(random))
    if random.random() < 0.3:
        other = random.choice(EXTREMES)(random, _size(random))
        text += "\n" + re.sub(r"\bmine\b", "other", other)
    return _changed(text, random, most=2) if random.random() < 0.2 else text.encode()


def _size(random: Random) -> int:
    """A size from 4 to 40,000; each order of magnitude is as likely."""
    return round(4 * 10 ** random.uniform(0, 4))


def _mixer(body: str, head: str = "mine") -> str:
    return f"mixer {head} {{\n  dims d, n\n  input u : d\n  param W : d -> n\n{body}\n}}\n"


def _nested(random: Random, size: int) -> str:
    open_, close = random.choice(
        (("(", ")"), ("[", "]"), ("exp(", ")"), ("sum[d](", ")"), ("-", ""))
    )
    return _mixer(f"  y = {open_ * size}u{close * random.choice((size, size - 1, size + 1))}")


def _long_sum(random: Random, size: int) -> str:
    sign = random.choice((" + ", " * ", " - ", " / ", "^", " · ", " ⊗ ", " == ", " "))
    return _mixer(f"  y = {sign.join(['u'] * size)}")


def _chain(random: Random, size: int) -> str:
    size = min(size, 2000)
    value = random.choice(("{0} + u", "exp({0})", "{0} * {0}", "{0}[i-1]", "sum[d]({0}) * u"))
    lines = [f"  a{k + 1} = {value.format(f'a{k}')}" for k in range(size)]
    random.shuffle(lines)
    return _mixer("\n".join(["  a0 = u", *lines, f"  y = a{size}"]))


def _functions(random: Random, size: int) -> str:
    size = min(size, 400)
    value = random.choice(("f{0}(x) * f{0}(x)", "f{0}(f{0}(x))", "f{0}(x)"))
    lines = [f"  f{k}(x) = {value.format(k + 1)}" for k in range(size)]
    return _mixer("\n".join([*lines, f"  f{size}(x) = x", "  y = f0(u)"]))


def _states(random: Random, size: int) -> str:
    size = min(size, 60)
    other = random.choice((0, 1, size - 1))
    lines = [f"  state S{k} : d" for k in range(size)]
    lines += [
        f"  S{k} = 1/2 * S{k}[i-1] + 1/3 * S{(k + other) % size}[i-1] + u" for k in range(size)
    ]
    return _mixer("\n".join([*lines, f"  y = {' + '.join(f'S{k}' for k in range(size))}"]))


def _name(random: Random, size: int) -> str:
    name = random.choice(("a", "λ", "_", "A1", random.choice(tuple(GREEK)))) * size
    return _mixer(f"  {name} = u\n  y = {name}", random.choice(("mine", name)))


def _number(random: Random, size: int) -> str:
    number = random.choice((*NUMBERS, "9" * size, "1." + "3" * size, f"1e{size}", f"1e-{size}"))
    return random.choice((
        _mixer(f"  y = {number} * u"),
        _mixer(f"  y = u^{number}"),
        _mixer(f"  y = fir[n](ones[n], u[i-{number}])"),
        _mixer("  y = W u").replace("dims d, n", f"dims d, n = {number}"),
        _mixer(f"  param p : d = {number}\n  y = p * u"),
    ))  # fmt: skip


def _units(random: Random, size: int) -> str:
    size = min(size, 400)
    step = random.choice((1, 1, 2, -1))
    return "".join(f"mixer m{k} extends m{(k + step) % size} {{ y = u }}\n" for k in range(size))


def _lines(random: Random, size: int) -> str:
    return random.choice(("\n", ";", " ", "#\n", "# " + "x" * 99 + "\n", "\r\n", "\t")) * size


def _many(random: Random, size: int) -> str:
    item = random.choice(("  param p{0} : d", "  dims x{0}", "  q{0} = u", "  use token_shift on u",
                          "  claim stable", "  state s{0} : d", "  input v{0} : d"))  # fmt: skip
    return _mixer("\n".join(item.format(k) for k in range(min(size, 3000))) + "\n  y = u")


def _mistakes(random: Random, size: int) -> str:
    return _mixer("\n".join(f"  q{k} = x{k} + ∙" for k in range(min(size, 3000))))


EXTREMES: tuple[Callable[[Random, int], str], ...] = (
    _nested, _long_sum, _chain, _functions, _states, _name, _number, _units, _lines, _many,
    _mistakes,
)  # fmt: skip


def _changed(text: str, random: Random, most: int = 8, least: int = 1) -> bytes:
    pieces = re.findall(r"\w+|\s+|[^\w\s]", text)
    for _ in range(random.randint(least, most)):
        pieces = _change(pieces or [""], random)
    data = "".join(pieces).encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        data = _bytes_changed(data, random)
    return data


def _change(pieces: list[str], random: Random) -> list[str]:
    """One change of a text that is cut into words."""
    at = random.randrange(len(pieces))
    to = min(len(pieces), at + random.choice((1, 1, 1, 2, 5, 20, 100)))
    match random.randrange(11):
        case 0:
            return pieces[:at] + pieces[to:]
        case 1:
            return pieces[:to] + pieces[at:to] + pieces[to:]
        case 2:
            return [*pieces[:at], random.choice(WORDS), *pieces[at + 1 :]]
        case 3:
            return [*pieces[:at], random.choice(WORDS), *pieces[at:]]
        case 4:
            return [*pieces[:at], random.choice(ODD), *pieces[at:]]
        case 5:
            return [*pieces[:at], random.choice(NUMBERS), *pieces[at + 1 :]]
        case 6 | 7:
            return _another_name(pieces, random)
        case 8:
            other = random.randrange(len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
            return pieces
        case 9:
            from_ = re.findall(r"\w+|\s+|[^\w\s]", random.choice(specs()))
            start = random.randrange(len(from_))
            return pieces[:at] + from_[start : start + random.choice((1, 5, 40))] + pieces[to:]
    lines = "".join(pieces).split("\n")
    random.shuffle(lines)
    return re.findall(r"\w+|\s+|[^\w\s]", "\n".join(lines))


def _another_name(pieces: list[str], random: Random) -> list[str]:
    """One word in place of another: the change after which most is still understood."""
    words = [k for k, piece in enumerate(pieces) if piece[:1].isalnum()]
    if words:
        pieces[random.choice(words)] = pieces[random.choice(words)]
    return pieces


def _bytes_changed(data: bytes, random: Random) -> bytes:
    out = bytearray(data or b" ")
    for _ in range(random.choice((1, 2, 10))):
        at = random.randrange(len(out))
        match random.randrange(3):
            case 0:
                out[at] = random.randrange(256)
            case 1:
                del out[at : at + random.choice((1, 10, 1000))]
                out = out or bytearray(b" ")
            case 2:
                out[at:at] = random.randbytes(random.choice((1, 4, 50)))
    return bytes(out)


# Certificates


def changed_certificate(random: Random) -> bytes:
    """A certificate, changed as a value."""
    document = json.loads(random.choice(certificates()))
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        places = list(_places(document))
        at = random.choice(places)
        _put(document, at, _value(document, at, places, random))
    return json.dumps(document, ensure_ascii=random.random() < 0.5).encode("utf-8", "replace")


def changed_certificate_bytes(random: Random) -> bytes:
    """A certificate, changed as bytes, or JSON of no meaning."""
    if random.random() < 0.3:
        opens = random.choice(("[", '{"a":', "[0,", '{"format":'))
        return opens.encode() * random.choice((1, 100, 100_000))
    return _bytes_changed(random.choice(certificates()).encode(), random)


def _places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if at:
        yield at
    steps: Sequence[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        steps = list(value.items())
    elif isinstance(value, list):
        steps = list(enumerate(value))
    for step, inner in steps:
        yield from _places(inner, (*at, step))


def _get(document: Any, at: tuple[str | int, ...]) -> Any:
    for step in at:
        document = document[step]
    return document


def _put(document: Any, at: tuple[str | int, ...], value: Any) -> None:
    _get(document, at[:-1])[at[-1]] = value


def _value(
    document: Any, at: tuple[str | int, ...], places: list[tuple[str | int, ...]], random: Random
) -> Any:
    """Another value for a place; one that stands elsewhere is copied, so that none holds itself."""
    there = _get(document, at)
    if random.random() < 0.4:
        return json.loads(json.dumps(_get(document, random.choice(places))))
    if isinstance(there, list) and random.random() < 0.7:
        return random.choice((there[1:], there[::-1], there * 2, [there], []))
    if isinstance(there, dict) and there and random.random() < 0.7:
        gone = random.choice(list(there))
        rest = {key: value for key, value in there.items() if key != gone}
        return random.choice((rest, {**there, "other": 0}, {**rest, f"{gone}_": there[gone]}))
    if isinstance(there, int) and not isinstance(there, bool) and random.random() < 0.7:
        return random.choice((there + 1, -there, 0, 2**31, 2**64, 10**4000, float(there % 2**64)))
    return random.choice((None, True, 0, -1, 1.5, 1e308, "", "u", "λ", "\0", "x" * 9999, [], {}))


def swapped_certificates(random: Random) -> bytes:
    """A certificate in which subtrees stand where others of their kind stood, or another's do."""
    first, second = (json.loads(text) for text in random.sample(certificates(), 2))
    here, there = list(_places(first)), list(_places(second))
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.choice(here)
        step, kind = at[-1], type(_get(first, at))
        alike = [p for p in there if p[-1] == step] if isinstance(step, str) else there
        alike = [p for p in alike if isinstance(_get(second, p), kind)]
        if alike:
            _put(first, at, json.loads(json.dumps(_get(second, random.choice(alike)))))
            here = list(_places(first))
    return json.dumps(first).encode()


# Editors

REQUESTS = ("edit", "complete", "hover", "definitions", "rename", "format", "fix", "show")


def dialogue(random: Random) -> bytes:
    """A text that an editor opens and the requests that follow, in JSON."""
    text = random.choice(specs())
    requests: list[list[Any]] = []
    for _ in range(random.randint(1, 12)):
        at = random.choice((random.randrange(len(text) + 1), 0, len(text), 10**9))
        word = random.choice((random.choice(WORDS), random.choice(ODD), random.choice(NUMBERS)))
        requests.append([random.choice(REQUESTS), at, at + random.choice((0, 1, 9, 200)), word])
    return json.dumps([text, requests]).encode()


KINDS: dict[str, tuple[float, Callable[[Random], bytes]]] = {
    "noise": (0.1, noise),
    "changed spec": (0.08, changed_spec),
    "changed random mixer": (0.01, changed_mixer),
    "text of the grammar": (0.16, derived),
    "extreme text": (0.002, extreme),
    "changed certificate": (0.238, changed_certificate),
    "swapped certificates": (0.1, swapped_certificates),
    "certificate, bytes changed": (0.3, changed_certificate_bytes),
    "editor dialogue": (0.01, dialogue),
}
"""Kinds of inputs: their share, and what makes one.

Shares go against the time of an input: random mixers and extreme texts take tens to a thousand
times what the others take.
"""
