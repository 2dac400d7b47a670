"""Conditions as text: one line for those on the entries of one array, entries by axis."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from dsfc.expr.interval import REALS, Interval
from dsfc.expr.tree import Field
from dsfc.prover.points import families
from dsfc.system.known import bounds
from dsfc.trusted.claim import Claim
from dsfc.trusted.comparable import OTHER, array_names
from dsfc.trusted.conditions import Conditions, reach
from dsfc.trusted.generalize_inputs import LABELS, range_of, system_of
from dsfc.trusted.generator_names import lags, shifted
from dsfc.trusted.polynomial import Monomial, Polynomial, Quotient, generator, number
from dsfc.trusted.statement import WrittenClaim
from dsfc.trusted.witness import stored_axes

_LEAF = re.compile(r"((?:[ABb]:)?[A-Za-z_]\w*|[κγ])\[([\d,]*)\](?:@(\d))?")

_ROOT = re.compile(r"exp\((\d+/\d+)\*log\(size\[(\w+)\]\)\)")
"""A root of a size, as generators have it."""


class ConditionText:
    """The conditions of a claim, for people.

    Args:
        claim: with conditions.
        statement: the claim written out.
    """

    def __init__(self, claim: Claim, statement: WrittenClaim) -> None:
        """Collects the axes of all arrays."""
        self.claim, self.symbols = claim, statement.symbols
        self.conditions = Conditions(claim.conditions)
        self.values = self.conditions.values(self.conditions.window)
        self.axes: dict[str, tuple[str, ...]] = {}
        for second in (False, True):
            names = array_names(claim, second)
            system = system_of(claim, second)
            for t in (*system.inputs, *system.params, *system.buffers):
                same = names.get(t.name, t.name)
                self.axes[same] = tuple(a.name for a in stored_axes(t))
        bare = [name.removeprefix(LABELS[0]).removeprefix(LABELS[1]) for name in self.axes]
        self.twice = {name for name in bare if bare.count(name) > 1}

    def lines(self) -> list[tuple[tuple[int, ...], str]]:
        """Returns (conditions by position, text), a line for each family or each of its members."""
        out = []
        for family in families(self.claim):
            pairs = [self._solved(k) for k in family]
            line = self._with_gauge(family) or self._joined(pairs)
            if line is not None:
                out.append((family, line))
            else:
                out += [((k,), " = ".join(pair)) for k, pair in zip(family, pairs, strict=True)]
        return out

    def entries(self) -> list[str]:
        """Returns every condition, entry by entry."""
        every = range(len(self.claim.conditions))
        return [self.plain(" = ".join(self._solved(k))) for k in every]

    def _with_gauge(self, family: tuple[int, ...]) -> str | None:
        """One text for conditions with a matrix G between two arrays: see `gauge`."""
        c = self.claim.conditions[family[0]]
        p = self.conditions.polynomials[family[0]]
        others = {m[1]: m[2] for g in p.names - {c.solved} if (m := _LEAF.fullmatch(g))}
        (array, *more) = [x for x in others if not x.startswith("γ")] or [""]
        if more or array not in self.axes or "γ" not in "".join(p.names):
            return None
        solved, axes = c.solved.partition("[")[0], self.axes[c.solved.partition("[")[0]]
        places = [_numbers(m[2]) for g in p.names if (m := _LEAF.fullmatch(g)) and m[1] == array]
        (inner,) = [a for n, a in enumerate(self.axes[array]) if len({x[n] for x in places}) > 1]
        other = next(x for x in "mkl_" if x not in (*axes, *self.axes[array]))
        outer = ",".join(a for a in axes if a != inner)
        before = f"{outer}; " * bool(outer)
        inverse = any(c.solved in dict(m) and len(m) > 1 for m in p.terms)
        matrix, at = ("inverse(G)", f"{inner},{other}") if inverse else ("G", f"{other},{inner}")
        right = ",".join(other if a == inner else a for a in self.axes[array])
        value = f"sum[{other}]({matrix}[{before}{at}] * {array}[{right}]@0)"
        return self.plain(f"{solved}[{','.join(axes)}]@0 = {value}")

    def over_time(self) -> list[str]:
        """Returns the conditions that link tokens, with the values of others put in."""
        out = []
        for family in families(self.claim):
            if not any(reach(self.conditions.polynomials[k]) for k in family):
                continue
            pairs = []
            for k in family:
                name = self.claim.conditions[k].solved
                left, right = generator(name), self.values[name]
                head, args = self.symbols.defined.get(name, ("", ()))
                if head == "exp":
                    exponent = args[0].substituted(self.values)
                    pairs.append((f"log({_text(right)})", _text(exponent)))
                else:
                    pairs.append((_text(Quotient(left)), _text(right)))
            pairs = list(dict.fromkeys(pairs))
            line = self._joined(pairs)
            out += [line] if line is not None else [" = ".join(pair) for pair in pairs]
        return [self.plain(line) for line in dict.fromkeys(out)]

    def consequences(self) -> list[str]:
        """Returns what follows from exponentials that conditions give one value, as rules."""
        groups: dict[str, list[Quotient]] = {}
        for c in self.claim.conditions:
            head, args = self.symbols.defined.get(c.solved, ("", ()))
            if head == "exp":
                exponent = args[0].substituted(self.values)
                groups.setdefault(_text(self.values[c.solved]), []).append(self._core(exponent))
        every = [(_text(q),) for group in groups.values() for q in group]
        rule = self._rule(every) if len(every) > len(groups) else None
        if rule is None:
            return []
        line, letters = rule
        whole, part, at = list[str](), list[str](), 0
        members = []
        for group in groups.values():
            members.append(range(at, at + len(group)))
            at += len(group)
        for ranks, axis in letters.items():
            sets = [{ranks[k] for k in group} for group in members]
            if all(len(group) == len(set(ranks)) for group in sets):
                whole.append(axis)
            elif any(len(group) > 1 for group in sets):
                part.append(axis)
        arrays = [m[1] for value in groups for m in _LEAF.finditer(value)]
        block = ", ".join(dict.fromkeys(axis for x in arrays for axis in self.axes.get(x, ())))
        said = [f"for all {', '.join(whole)}"] * bool(whole)
        said += [f"for all {', '.join(part)} of one {block}"] * bool(part)
        return [f"{line} is the same {' and '.join(said)}"] if said else []

    def _core(self, q: Quotient) -> Quotient:
        """A value without the factors that stand at a token."""
        if q.den or len(q.num.terms) != 1:
            return q
        ((m, c),) = q.num.terms.items()
        return Quotient(Polynomial({tuple(f for f in m if not lags(frozenset({f[0]}))): c}))

    def degenerate(self) -> list[str]:
        """Returns what is left of conditions that link tokens where all is token by token."""
        pairs: dict[str, list[tuple[str, str]]] = {}
        for c in self.claim.conditions:
            value = self.values[c.solved]
            late = {g for g in value.names if lags(frozenset({g})) == frozenset({1})}
            if lags(value.names) != frozenset({0, 1}) or value.den or len(value.num.terms) != 1:
                continue
            # Of a product of several, or a power, h alone need not stay the same.
            if len(late) != 1 or abs(dict(next(iter(value.num.terms))).get(min(late), 0)) != 1:
                continue
            # f(i) = g(i) h(i-1) for all tokens: h is the same at all of them, and so is f / g.
            steady = value.substituted({g: Quotient(generator(shifted(g, -1))) for g in late})
            head, args = self.symbols.defined.get(c.solved, ("", ()))
            never = head == "exp" and steady.number == 1 and self.symbols.positive(args[0])
            kept = " and ".join(shifted(g, -1) for g in sorted(late))
            end = _text(steady) + (", which positive values exclude" if never else "")
            pairs.setdefault(end, []).append(
                (f"{kept} is the same at all tokens and {c.solved}", end)
            )
        out = []
        for pair in pairs.values():
            line = self._joined(pair)
            out += [line] if line is not None else [self.plain(" = ".join(p)) for p in pair]
        return out

    def inside(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Returns b's values inside and the other conditions, where these give all of them values.

        Then a is b with functions of a's values for those inside b; None where they do not say so.
        That they lie where b's values do is a condition more, but where their terms show it.
        """
        ours, theirs = ({n for n in array_names(self.claim, k).values() if n.startswith(LABELS)}
                        for k in (False, True))  # fmt: skip
        states: set[str] = set()
        others = []
        for (first, *_), text in self.lines():
            solved = self.claim.conditions[first].solved
            if solved.startswith(LABELS[1]):
                states.add(solved.partition("[")[0])
            else:
                others.append(self.plain(text))
        read = {g for name in self.values if name.startswith(LABELS[1])
                for g in self.values[name].names}  # fmt: skip
        if not ours or states != theirs or any(LABELS[1] in g for g in read):
            return None
        names = tuple(sorted(n.removeprefix(LABELS[1]) for n in states))
        return names, (*others, *self._ranges(names))

    def _ranges(self, names: tuple[str, ...]) -> list[str]:
        """Where values inside b lie, of those whose given values may lie elsewhere."""
        out = []
        for s in self.claim.b.streams:
            if s.name not in names or s.field is not Field.REAL:
                continue
            array, place = f"{LABELS[1]}{s.name}[", range_of(self.claim.b, s)
            values = [q for name, q in self.values.items() if name.startswith(array)]
            if not all(self._lies(q, place) for q in values):
                out.append(f"{s.name} is in {interval_text(place)}")
        return out

    def _lies(self, q: Quotient, place: Interval) -> bool:
        """Whether a value lies in an interval: its terms show it, or it is one that a has there."""
        if not self.symbols.is_real(q):
            return False
        entry = _LEAF.fullmatch(q.text)
        if entry is not None and self._place(entry[1]).within(place):
            return True
        ends = (place.low, place.open_low, 1), (place.high, place.open_high, -1)
        for x, is_open, sign in ends:
            if math.isinf(x):
                continue
            rest = (q - number(Fraction(x))) * number(sign)
            if not (self.symbols.positive(rest) or (not is_open and not rest)):
                return False
        return True

    def _place(self, name: str) -> Interval:
        """Where the entries of an array of a lie."""
        a, names = self.claim.a, array_names(self.claim, False)
        ranges = {names.get(n, n): x for n, x in bounds(a)[0].items()}
        ranges |= {names[s.name]: range_of(a, s) for s in a.streams
                  if s.name in names and s.field is Field.REAL}  # fmt: skip
        return ranges.get(name, REALS)

    def plain(self, text: str) -> str:
        """Returns text with names as specs spell them, and times in words."""

        def spelled(match: re.Match[str]) -> str:
            name, index, lag = match.groups()
            bare = name[2:] if name[:2] in (*LABELS, OTHER) else name
            shown = name if bare in self.twice and name[:2] in LABELS else bare
            shown = f"the second's {bare}" if name.startswith(OTHER) else shown
            time = "" if lag is None else "i" if lag == "0" else f"i-{lag}"
            inner = "; ".join(x for x in (time, index) if x)
            return f"{shown}[{inner}]" if inner else shown

        return re.sub(r"((?:[ABb]:)?[A-Za-z_]\w*|κ)\[([\w,]*)\](?:@(\d))?", spelled, text)

    def spelled(self, line: tuple[tuple[int, ...], str]) -> tuple[tuple[int, ...], str]:
        """Returns a line with names as specs spell them."""
        return line[0], self.plain(line[1])

    def reads_back(self, k: int) -> bool:
        """Returns whether a condition links tokens."""
        return reach(self.conditions.polynomials[k]) > 0

    # --- one line for many ------------------------------------------------------------------------

    def _solved(self, k: int) -> tuple[str, str]:
        condition = self.claim.conditions[k]
        value, before = self.values[condition.solved], reach(self.conditions.polynomials[k])
        if max(lags(value.names), default=0) > before:
            # With the values of others it would say nothing of the first tokens, where it holds.
            value = Conditions((condition,)).values(before)[condition.solved]
        return condition.solved, _text(value)

    def _joined(self, pairs: Sequence[tuple[str, ...]]) -> str | None:
        """One text for all, with axes in the place of positions; None where they differ."""
        rule = self._rule(pairs)
        return None if rule is None else rule[0]

    def _rule(
        self, pairs: Sequence[tuple[str, ...]]
    ) -> tuple[str, dict[tuple[int, ...], str]] | None:
        """The same with what each axis is at each of the pairs."""
        texts = [" = ".join(pair) for pair in pairs]
        skeletons = {_LEAF.sub(lambda m: f"{m[1]}@{m[3]}", t) for t in texts}
        if len(skeletons) != 1:
            return None
        leaves = [list(_LEAF.finditer(t)) for t in texts]
        letters: dict[tuple[int, ...], str] = {}
        replaced: list[str] = []
        for n, match in enumerate(leaves[0]):
            columns = list(zip(*(_numbers(each[n][2]) for each in leaves), strict=True))
            axes = self.axes.get(match[1], ("k",) * len(columns))
            index, free = [], set[tuple[int, ...]]()
            for axis, column in zip(axes, columns, strict=True):
                if len(set(column)) == 1 and len(texts) > 1:
                    index.append(str(column[0]))
                    continue
                ranks = _ranks(column)
                index.append(letters.setdefault(ranks, axis))
                free.add(ranks)
            places = set(zip(*free, strict=True))
            if places and len(places) < math.prod(len(set(r)) for r in free):
                return None  # some of the entries alone
            replaced.append(",".join(index))
        if len(set(letters.values())) != len(letters):
            return None
        sizes = dict(self.claim.sizes)
        if any(sizes.get(axis, len(set(r))) != len(set(r)) for r, axis in letters.items()):
            return None  # a letter says all entries
        parts, end = [], 0
        for match, index_text in zip(leaves[0], replaced, strict=True):
            parts.append(texts[0][end : match.start(2)] + index_text)
            end = match.end(2)
        return self.plain("".join(parts) + texts[0][end:]), letters


def _numbers(index: str) -> tuple[int, ...]:
    return tuple(int(k) for k in index.split(",") if k)


def _ranks(column: tuple[int, ...]) -> tuple[int, ...]:
    order: dict[int, int] = {}
    return tuple(order.setdefault(k, len(order)) for k in column)


def _text(q: Quotient) -> str:
    """A quotient as people write it."""
    above: dict[str, int] = {}
    for g in q.num.names:
        least = min(dict(m).get(g, 0) for m in q.num.terms)
        if least < 0:
            above[g] = -least
    clearing = tuple(sorted(above.items()))
    top = _sum(q.num * Polynomial({clearing: Fraction(1)}), bracket=bool(above or q.den))
    below = [_power(g, e) for g, e in clearing]
    below += [
        f"({_sum(b)})" + ("" if e == 1 else f"^{e}")
        for b, e in sorted(q.den.items(), key=lambda t: t[0].text)
    ]
    if not below:
        return top
    return f"{top} / {below[0]}" if len(below) == 1 else f"{top} / ({' * '.join(below)})"


def _sum(p: Polynomial, bracket: bool = False) -> str:
    terms = [_term(m, c) for m, c in p.ordered] or ["0"]
    text = " + ".join(terms).replace("+ -", "- ")
    return f"({text})" if bracket and len(terms) > 1 else text


def _term(m: Monomial, c: Fraction) -> str:
    factors = [_power(g, e) for g, e in m]
    if not factors:
        return str(c)
    sign = "-" if c == -1 else "" if c == 1 else f"{c} * "
    return sign + " * ".join(factors)


def _power(g: str, e: int) -> str:
    root = _ROOT.fullmatch(g)
    if root is not None:
        return f"{root[2]}^({Fraction(root[1]) * e})"
    return g if e == 1 else f"{g}^{e}"


def interval_text(x: Interval) -> str:
    """Returns an interval as text: "(0, 1]"."""
    left = "(" if x.open_low or math.isinf(x.low) else "["
    right = ")" if x.open_high or math.isinf(x.high) else "]"
    low, high = (f"{v:g}".replace("inf", "∞") for v in (x.low, x.high))
    return f"{left}{low}, {high}{right}"


def values_text(entries: Sequence[tuple[int, int, int, int, int]]) -> str:
    """Returns entries of a point as text."""
    shown = [_exact(v) for v in entries]
    return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"


def _exact(value: tuple[int, int, int, int, int]) -> str:
    p, q, r, s, k = value
    c = Fraction(p, q)
    if not k or not c:
        return str(c)
    log = f"log({Fraction(r, s)})" + ("" if k == 1 else f"^{k}")
    return log if c == 1 else f"{c} {log}"
