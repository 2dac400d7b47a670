"""A System in torch, by its definition and with autograd: the judge of derived gradients.

Independent of `dsfc.system.evaluate` and of `dsfc.expr.evaluate`: values are tensors whose
dimensions have labels, which are axes, or names of time indices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.tree import (
    Add,
    Div,
    Fir,
    Iota,
    Map,
    Mul,
    Now,
    Num,
    Ones,
    Param,
    Pow,
    Prim,
    Reduce,
    Ref,
    Rename,
    Series,
    Size,
)
from dsfc.system.ir import Cache, MaxPlus, Read, Stage
from dsfc.transform.flatten import flatten
from dsfc.transform.terms import Names

LOWEST = -(2.0**100)
"""A running maximum before the first token."""

F = torch.nn.functional


@dataclass
class Value:
    """A tensor with labelled dimensions."""

    labels: tuple
    data: torch.Tensor

    def over(self, labels):
        data = self.data
        order = [self.labels.index(x) for x in labels if x in self.labels]
        data = data.permute(order)
        shape = iter(data.shape)
        return data.reshape([next(shape) if x in self.labels else 1 for x in labels])


def joined(function, *values):
    labels = tuple(dict.fromkeys(x for v in values for x in v.labels))
    return Value(labels, function(*(v.over(labels) for v in values)))


def both(function):
    def apply(x, y):
        kind = torch.promote_types(x.dtype, y.dtype)
        return function(x.to(kind), y.to(kind))

    return apply


PRIMS = {
    "pi": lambda: torch.tensor(math.pi, dtype=torch.float64),
    "exp": torch.exp,
    "log": torch.log,
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "exprel": lambda x: torch.where(x == 0, 1 + x / 2, torch.expm1(x) / torch.where(x == 0, 1, x)),
    "sqrt": torch.sqrt,
    "abs": torch.abs,
    "sign": torch.sgn,
    "step": lambda x: (torch.sign(x) + 1) / 2,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "softplus": lambda x: -F.logsigmoid(-x),
    "logsigmoid": F.logsigmoid,
    "relu": torch.relu,
    "elu": F.elu,
    "silu": F.silu,
    "gelu": F.gelu,
    "max": torch.maximum,
    "min": torch.minimum,
    "re": lambda x: x.real,
    "im": lambda x: x.imag if x.is_complex() else torch.zeros_like(x),
    "conj": lambda x: torch.conj_physical(x),
    "cplx": lambda x, y: torch.complex(*torch.broadcast_tensors(x, y)),
    "cis": lambda x: torch.polar(torch.ones_like(x), x),
}
ALONG = {
    "softmax": lambda x, d: torch.softmax(x, d),
    "l2norm": lambda x, d: F.normalize(x, dim=d, eps=1e-12),
    "rmsnorm": lambda x, d: F.normalize(x, dim=d, eps=1e-12) * x.shape[d] ** 0.5,
}


class Interpreter:
    """Evaluates expressions over whole sequences."""

    def __init__(self, length, sizes, tensors, maps):
        self.length, self.sizes = length, sizes
        self.tensors = tensors  # name -> Value (with "i" first for streams)
        self.maps = maps
        self.maxima = set()  # names of running maxima, which are LOWEST before the first token

    def size(self, axis):
        return self.sizes[axis.name]

    def number(self, x):
        return Value((), torch.tensor(float(x), dtype=torch.float64))

    def of(self, e):
        match e:
            case Num(value):
                return self.number(value)
            case Size(axis):
                return self.number(self.size(axis))
            case Ones():
                labels = tuple(sorted(e.over))
                return Value(labels, torch.ones([self.size(a) for a in labels]).double())
            case Iota(axis):
                return Value((axis,), torch.arange(self.size(axis)).double())
            case Param(name=name):
                return self.tensors[name]
            case Ref():
                return self.ref(e)
            case Add(args):
                return self.fold(torch.add, args)
            case Mul(args):
                return self.fold(torch.mul, args)
            case Div(a, b):
                return joined(both(torch.div), self.of(a), self.of(b))
            case Pow(a, b):
                return joined(both(torch.pow), self.of(a), self.of(b))
            case Reduce(how=how, axis=axis, arg=arg):
                return self.reduce(how.value, axis, self.of(arg))
            case Map(map, arg):
                return self.apply(map, self.of(arg))
            case Fir():
                return self.fir(e)
            case Rename(old, new, arg):
                v = self.of(arg)
                return Value(tuple(new if x == old else x for x in v.labels), v.data)
            case Prim(axis=None):
                return joined(PRIMS[e.name], *(self.of(a) for a in e.args))
            case Prim():
                v = self.with_axes(self.of(e.args[0]), (e.axis,))
                return Value(v.labels, ALONG[e.name](v.data, v.labels.index(e.axis)))
            case Series(order, arg):
                v = self.of(arg)
                terms = [v.data**r / math.factorial(r) for r in range(order + 1)]
                return Value(v.labels, sum(terms))
            case Lag(terms, constant):
                out = self.number(constant)
                for name, c in terms:
                    steps = Value((name,), c * torch.arange(self.length).double())
                    out = joined(torch.add, out, steps)
                return out
            case Past():
                return self.past(e)
            case Run():
                return self.run(e)
        raise TypeError(type(e).__name__)

    def fold(self, function, args):
        out = self.of(args[0])
        for a in args[1:]:
            out = joined(both(function), out, self.of(a))
        return out

    def with_axes(self, v, axes):
        for a in axes:
            if a not in v.labels:
                data = v.data.unsqueeze(-1).expand(*v.data.shape, self.size(a))
                v = Value((*v.labels, a), data)
        return v

    def reduce(self, how, axis, v):
        v = self.with_axes(v, (axis,))
        at = v.labels.index(axis)
        labels = v.labels[:at] + v.labels[at + 1 :]
        if how == "max":
            return Value(labels, torch.amax(v.data, at))
        return Value(labels, getattr(torch, how)(v.data, at))

    def apply(self, map, v):
        matrix = self.maps[map.name]
        if map.adjoint:
            matrix = matrix.conj()
        v = self.with_axes(v, (*map.source, *map.each))
        number = {x: k for k, x in enumerate(v.labels)}
        fresh = {x: len(number) + k for k, x in enumerate(map.target)}
        source, target = [number[x] for x in map.source], [fresh[x] for x in map.target]
        index = [number[x] for x in map.each]
        index += source + target if map.adjoint else target + source
        kept = {x: k for x, k in number.items() if x not in map.source} | fresh
        kind = torch.promote_types(matrix.dtype, v.data.dtype)
        data = torch.einsum(
            matrix.to(kind), index, v.data.to(kind), list(number.values()), list(kept.values())
        )
        return Value(tuple(kept), data)

    def shifted(self, v, lag, before=0.0):
        if lag == 0:
            return v
        zeros = torch.full_like(v.data[: min(abs(lag), self.length)], before if lag > 0 else 0.0)
        if lag > 0:
            data = torch.cat([zeros, v.data[: self.length - lag]]) if lag < self.length else zeros
        else:
            data = torch.cat([v.data[-lag:], zeros]) if -lag < self.length else zeros
        return Value(v.labels, data[: self.length])

    def ref(self, e):
        if e.name == "first":
            data = torch.zeros(self.length).double()
            data[:1] = 1
            v = Value(("i",), data)
        else:
            v = self.tensors[e.name]
        if e.at is None:
            return v
        v = self.shifted(v, e.at.lag, LOWEST if e.name in self.maxima else 0.0)
        name = "i" if isinstance(e.at, Now) else e.at.var
        return Value(tuple(name if x == "i" else x for x in v.labels), v.data)

    def fir(self, e):
        w = self.with_axes(self.of(e.weight), (e.axis,))
        at = w.labels.index(e.axis)
        out = None
        for r in range(self.size(e.axis)):
            lag = e.arg.at.lag + (-r if e.reverse else r)
            x = self.of(Ref(e.arg.name, e.arg.over, e.arg.kind, e.arg.when, Now(lag)))
            tap = Value(w.labels[:at] + w.labels[at + 1 :], w.data.select(at, r))
            part = joined(both(torch.mul), tap, x)
            out = part if out is None else joined(both(torch.add), out, part)
        return out

    def past(self, e):
        body = self.of(e.body)
        outer = e.outer or "i"
        steps = torch.arange(self.length)
        i, j = Value((outer,), steps - e.lag), Value((e.var,), steps)
        mask = joined(
            {
                Relation.UP_TO: lambda i, j: j <= i,
                Relation.BEFORE: lambda i, j: j < i,
                Relation.FROM: lambda i, j: j >= i,
                Relation.AFTER: lambda i, j: j > i,
            }[e.relation],
            i,
            j,
        )
        kept = joined(lambda m, x: torch.where(m, x, torch.zeros_like(x)), mask, body)
        at = kept.labels.index(e.var)
        return Value(kept.labels[:at] + kept.labels[at + 1 :], kept.data.sum(at))

    def run(self, e):
        steps = torch.arange(self.length)
        ends = []
        for end in (e.low, e.high):
            name = "i" if isinstance(end, Now) else end.var
            ends.append(Value((name,), steps - end.lag))
        inside = joined(
            lambda low, high, at: (low < at) & (at <= high), *ends, Value((e.var,), steps)
        )
        arg = self.of(e.arg)
        kept = joined(lambda m, x: torch.where(m, x, torch.ones_like(x)), inside, arg)
        at = kept.labels.index(e.var)
        return Value(kept.labels[:at] + kept.labels[at + 1 :], kept.data.prod(at))


def run(system, length, sizes, values, initial=None):
    """Returns ({output: tensor [L, *axes] or [*axes]}, {state: final value}).

    Args:
        system: the System.
        length: number of tokens.
        sizes: axis name -> size.
        values: name -> tensor of inputs [L, *axes], parameters, buffers, matrices.
        initial: state -> [*axes]; zeros where missing.
    """
    flat = flatten(system, Names.of(system))
    tensors, maps = {}, {}
    for t in (*system.params, *system.buffers):
        if hasattr(t, "map"):
            maps[t.name] = values[t.name]
        else:
            tensors[t.name] = Value(t.axes, values[t.name])
    for t in system.inputs:
        tensors[t.name] = Value(("i", *t.axes), values[t.name])
    machine = Interpreter(length, sizes, tensors, maps)
    states, final = {}, {}
    for item in flat.order:
        if isinstance(item, Stage):
            scan(machine, item, initial or {}, states, final)
        else:
            if isinstance(item.value, MaxPlus):
                machine.maxima.add(item.name)
            value = node(machine, item.value, states)
            labels = item.axes if item.constant else ("i", *item.axes)
            tensors[item.name] = exactly(machine, value, labels, item.field)
    out = {}
    for o, e in flat.outputs:
        v = exactly(machine, machine.of(e), ("i", *o.axes), o.field)
        out[o.name] = v.data.sum(0) if o.over_time else v.data
    return out, final


def exactly(machine, v, labels, field):
    assert set(v.labels) <= set(labels), (v.labels, labels)
    shape = [machine.length if x == "i" else machine.size(x) for x in labels]
    data = v.over(labels).expand(shape)
    assert field or not data.is_complex()
    return Value(labels, data.to(torch.complex128) if field else data)


def node(machine, value, states):
    match value:
        case Read(terms, direct):
            parts = [term(machine, t, states[t.source][0 if t.lag == 0 else 1]) for t in terms]
            parts += [] if direct is None else [machine.of(direct)]
            out = parts[0]
            for p in parts[1:]:
                out = joined(both(torch.add), out, p)
            return out
        case Cache(past):
            return machine.of(past)
        case MaxPlus(log_decay=fall, log_weight=weight):
            return maximum(machine, machine.of(fall), machine.of(weight))
    return machine.of(value)


def maximum(machine, fall, weight):
    """m_i = max(m_{i-1} + fall_i, weight_i)."""
    labels = ("i", *sorted({*fall.labels, *weight.labels} - {"i"}))
    shape = [machine.length if x == "i" else machine.size(x) for x in labels]
    fall, weight = (v.over(labels).expand(shape) for v in (fall, weight))
    rows, held = [], weight.new_full(shape[1:], LOWEST)
    for f, w in zip(fall, weight, strict=True):
        held = torch.maximum(held + f, w)
        rows.append(held)
    return Value(labels, torch.stack(rows) if rows else weight)


def term(machine, t, h):
    return product_term(machine, t, machine.of(t.left), machine.of(t.right), h)


def product_term(machine, t, left, right, h):
    if t.matrix is not None:
        h = machine.apply(t.matrix, h)
    inner = joined(both(torch.mul), right, h)
    for a in sorted(t.over):
        inner = machine.reduce("sum", a, inner)
    out = joined(both(torch.mul), left, inner)
    return out if t.after is None else machine.apply(t.after, out)


def scan(machine, stage, initial, states, final):
    """Runs a stage token by token; stores (after, before) of each state over the sequence."""
    zero = {}
    for b in stage.blocks:
        dtype = torch.complex128 if b.field else torch.float64
        shape = [machine.size(a) for a in b.axes]
        start = initial.get(b.state, torch.zeros(shape, dtype=dtype))
        zero[b.state] = start.to(dtype)
    depth = max(len(b.chain) for b in stage.blocks)
    vectors = {
        e: machine.of(e)
        for b in stage.blocks
        for f in b.chain
        for e in [x for t in f.terms for x in (t.left, t.right)]
        + [x for d in f.drives for x in (d.key, d.stream)]
    }

    def at(e, i):
        v = vectors[e]
        if "i" not in v.labels:
            return v
        k = v.labels.index("i")
        return Value(v.labels[:k] + v.labels[k + 1 :], v.data.select(k, i))

    h = dict(zero)
    steps = range(machine.length)
    before = {s: [None] * machine.length for s in h}
    after = {s: [None] * machine.length for s in h}
    for i in steps if stage.direction > 0 else reversed(steps):
        for s in h:
            before[s][i] = h[s]
        for k in range(depth):
            new = dict(h)
            for b in stage.blocks:
                if k >= len(b.chain):
                    continue
                axes = {s.state: s.axes for s in stage.blocks}
                parts = [
                    product_term(
                        machine,
                        t,
                        at(t.left, i),
                        at(t.right, i),
                        Value(axes[t.source], h[t.source]),
                    )
                    for t in b.chain[k].terms
                ]
                parts += [
                    joined(both(torch.mul), at(d.key, i), at(d.stream, i))
                    for d in b.chain[k].drives
                ]
                out = Value(b.axes, torch.zeros_like(h[b.state]))
                for p in parts:
                    out = joined(both(torch.add), out, p)
                new[b.state] = exactly(machine, out, b.axes, b.field).data
            h = new
        for s in h:
            after[s][i] = h[s]
    for b in stage.blocks:
        s = b.state
        shape = (0, *zero[s].shape)
        rows = [torch.stack(x) if x else zero[s].new_zeros(shape) for x in (after[s], before[s])]
        states[s] = tuple(Value(("i", *b.axes), r) for r in rows)
        final[s] = h[s]
