"""The linear parts of a System: what of its read-out is C h + D u, and of which inputs u.

A read-out is linear from the top down to its reads as long as it is made of gates, maps, sums,
casts (linear over the reals) and ratios, whose denominators then count as given numbers η. What
stands above a product or another primitive is not linear: its arguments are parts of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsfc.expr.build import add, div, is_one, mul, num, prim, total
from dsfc.expr.tree import Div, Expr, Map, Mul, Now, Ref, Time
from dsfc.system.formulas import States, guarded, read_out_formula, states
from dsfc.system.ir import (
    Cast,
    ComplexPart,
    Direct,
    Gate,
    MapOut,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stage,
    Sum,
    SumOver,
    System,
)


@dataclass(frozen=True, slots=True)
class Normaliser:
    """The denominator of a ratio as a named number per token.

    Attributes:
        ref: the name it is given.
        value: the read-out it stands for, with its guard applied around it.
        ratio: the ratio it normalises.
    """

    ref: Ref
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class LinearPart:
    """A linear piece of a read-out.

    Attributes:
        name: "y" for the whole output, "num" and "den" for those of a ratio, else a number.
        root: the piece.
    """

    name: str
    root: ReadOut


def is_linear(r: ReadOut) -> bool:
    """Returns whether a read-out is linear in states and inputs, denominators taken as given."""
    match r:
        case Read() | Direct():
            return True
        case Gate(arg=a) | MapOut(arg=a) | Cast(arg=a) | SumOver(arg=a) | Ratio(num=a):
            return is_linear(a)
        case Sum(args):
            return all(is_linear(a) for a in args)
    return False


def linear_parts(system: System, output: int = 0) -> tuple[LinearPart, ...]:
    """Returns the linear parts of an output, the one nearest to the top first."""
    out: list[LinearPart] = []
    counts: dict[str, int] = {}

    def name(wish: str) -> str:
        counts[wish] = counts.get(wish, 0) + 1
        return wish if counts[wish] == 1 else f"{wish}_{counts[wish]}"

    def visit(r: ReadOut, wish: str, whole: bool) -> None:
        if whole and is_linear(r):
            if _reads(r) or wish == system.outputs[output].name:
                out.append(LinearPart(name(wish), r))
            whole = False
        match r:
            case Ratio(num=n, den=d):
                visit(n, "num", True)
                visit(d, "den", True)
            case Gate(arg=a) | MapOut(arg=a) | Cast(arg=a) | SumOver(arg=a):
                visit(a, wish, whole)
            case Sum(args):
                for a in args:
                    visit(a, wish, whole)
            case Product(args) | Post(args=args):
                for a in args:
                    visit(a, "inner", True)

    top = system.outputs[output]
    visit(top.value, top.name, True)
    return tuple(out)


def _reads(r: ReadOut) -> tuple[Read, ...]:
    match r:
        case Read():
            return (r,)
        case Gate(arg=a) | MapOut(arg=a) | Cast(arg=a) | SumOver(arg=a) | Ratio(num=a):
            return _reads(a)
        case Sum(args):
            return tuple(x for a in args for x in _reads(a))
    return ()


def stages_read(system: System, part: LinearPart) -> tuple[Stage, ...]:
    """Returns the stages that a part reads, in order."""
    names = {t.source for r in _reads(part.root) for t in r.terms}
    return tuple(s for s in system.stages if any(b.state in names for b in s.blocks))


def ratios_in(r: ReadOut) -> Iterator[Ratio]:
    """Yields the ratios on the linear paths of a read-out, from the top."""
    match r:
        case Ratio(num=a):
            yield r
            yield from ratios_in(a)
        case Gate(arg=a) | MapOut(arg=a) | Cast(arg=a) | SumOver(arg=a):
            yield from ratios_in(a)
        case Sum(args):
            for a in args:
                yield from ratios_in(a)


def normalisers(system: System, part: LinearPart) -> tuple[Normaliser, ...]:
    """Returns names for the denominators of a part: eta, or the next free name."""
    taken = {t.name for t in (*system.inputs, *system.params, *system.buffers)}
    taken |= {s.name for s in system.streams} | {b.state for b in system.blocks}
    out: list[Normaliser] = []
    for ratio in ratios_in(part.root):
        value = guarded(read_out_formula(ratio.den, states(system)), ratio.guard)
        name, k = "eta", 1
        while name in taken:
            k += 1
            name = f"eta_{k}"
        taken.add(name)
        ref = Ref(name, value.axes, value.field, Time.TOKEN, Now(0))
        out.append(Normaliser(ref, ratio))
    return tuple(out)


def linear_formula(
    r: ReadOut,
    blocks: States,
    names: tuple[Normaliser, ...],
    direct: Callable[[Expr], Expr],
) -> Expr:
    """Returns a linear read-out as an expression whose real part is the output.

    Casts are left out: Re x is x, Im x is -i x, for the one real part at the end.

    Args:
        r: the read-out.
        blocks: the states.
        names: names of denominators.
        direct: what to make of token-wise terms.
    """
    match r:
        case Cast(part=ComplexPart.RE, arg=a):
            return linear_formula(a, blocks, names, direct)
        case Cast(arg=a):
            turn = prim("cplx", num(0), num(-1))
            return mul(turn, linear_formula(a, blocks, names, direct))
        case Gate(factor=f, arg=a):
            inner = linear_formula(a, blocks, names, direct)
            if isinstance(f, Div) and is_one(f.num):
                return div(inner, f.den)
            return mul(f, inner)
        case MapOut(map=m, arg=a):
            return Map(m, linear_formula(a, blocks, names, direct))
        case SumOver(axis=axis, arg=a):
            return total((axis,), linear_formula(a, blocks, names, direct))
        case Ratio(num=a):
            (name,) = (n.ref for n in names if n.ratio is r)
            return div(linear_formula(a, blocks, names, direct), name)
        case Sum(args):
            return add(*(linear_formula(a, blocks, names, direct) for a in args))
        case Direct(value):
            return direct(value)
        case Read(terms, rest):
            read = read_out_formula(Read(terms), blocks)
            return read if rest is None else add(read, direct(rest))
    raise TypeError(f"{type(r).__name__} is not linear")


def scales(part: LinearPart, names: tuple[Normaliser, ...]) -> dict[str, Expr]:
    """Returns, for each state read, the product of the denominators in front of all its reads.

    This is the factor of the paper's gauge (Sieber et al. 2024 eq. 15): the state divided by it is
    read without normalisation. States without one are left out.
    """
    scalings: dict[str, list[tuple[Expr, ...]]] = {}

    def visit(r: ReadOut, dens: tuple[Expr, ...]) -> None:
        match r:
            case Read(terms):
                for t in terms:
                    scalings.setdefault(t.source, []).append(dens)
            case Gate(factor=f, arg=a):
                visit(a, dens + _denominators(f))
            case Ratio(num=a):
                visit(a, (*dens, *(n.ref for n in names if n.ratio is r)))
            case Cast(arg=a) | SumOver(arg=a):
                visit(a, dens)
            case MapOut(arg=a):
                visit(a, dens)
            case Sum(args):
                for a in args:
                    visit(a, dens)

    visit(part.root, ())
    out = {}
    for state, paths in scalings.items():
        shared = [d for d in paths[0] if all(d in p for p in paths)]
        if shared:
            out[state] = mul(*shared)
    return out


def _denominators(factor: Expr) -> tuple[Expr, ...]:
    if isinstance(factor, Div):
        return (factor.den,) if factor.den.time is not Time.CONST else ()
    if isinstance(factor, Mul):
        return tuple(d for a in factor.args for d in _denominators(a))
    return ()
