"""Random Systems over every kind of expression, transition, read and read-out node."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from dsfc.expr.build import ONE, add, div, mul, num, ones, power, prim, total
from dsfc.expr.declarations import Dimension, MapTensor, Tensor
from dsfc.expr.over_time import Lag, Past, Relation
from dsfc.expr.tree import (
    Axis,
    Bound,
    Field,
    Fir,
    LinearMap,
    Map,
    Now,
    Param,
    Pow,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Series,
    Time,
)
from dsfc.system.ir import (
    Block,
    Cache,
    Cast,
    ComplexPart,
    Direct,
    Direction,
    Drive,
    Factor,
    Gate,
    Guard,
    GuardKind,
    MapOut,
    Output,
    Post,
    Product,
    Ratio,
    Read,
    Stage,
    Stream,
    Sum,
    SumOver,
    System,
    Term,
)
from dsfc.system.verify import verify
from dsfc.transform.flatten import read_out_type

D, H, N, P, T = Axis(0, "d"), Axis(1, "h", True), Axis(2, "n"), Axis(3, "p"), Axis(4, "t")
COPY = Axis(5, "n_2", copy_of="n")
SIZES = {"d": 2, "h": 2, "n": 3, "p": 2, "t": 2, "n_2": 3}
SHAPES = [(H, N, P), (N, P), (D, N), (D,), (N,), ()]
ELEMENTWISE = ["tanh", "sigmoid", "softplus", "silu", "sin", "cos", "gelu", "elu", "erf", "relu"]
ALONG = ["softmax", "l2norm", "rmsnorm"]
REAL, COMPLEX = Field.REAL, Field.COMPLEX


class Maker:
    """Makes one System."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.params, self.streams, self.stages = [], [], []
        self.names = 0
        self.limit = None  # a read's vectors use streams from before its stage
        self.before = {}

    def pick(self, *items):
        return self.random.choice(items)

    def chance(self, p):
        return self.random.random() < p

    def fresh(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def subset(self, axes):
        return tuple(a for a in axes if self.chance(0.5))

    # --- expressions ------------------------------------------------------------------------------

    def param(self, axes, kind=REAL):
        name = self.fresh("w")
        self.params.append(Tensor(name, tuple(sorted(axes)), kind))
        return Param(name, frozenset(axes), kind)

    def map(self, source, target, kind=REAL):
        each = tuple(a for a in source if a in target and a.heads)
        source, target = (tuple(a for a in x if a not in each) for x in (source, target))
        m = LinearMap(self.fresh("W"), each, source, target, kind)
        self.params.append(MapTensor(m))
        return m

    def input(self, lag=0):
        return Ref("u", frozenset({D}), REAL, Time.TOKEN, Now(lag))

    def known(self, axes):
        """Real streams with these axes that may be read here."""
        axes = tuple(sorted(axes))
        return [s for s in self.streams[: self.limit] if s.axes == axes and s.field is REAL]

    def leaf(self, axes):
        known = [
            s
            for s in self.streams[: self.limit]
            if s.axes == tuple(sorted(axes)) and s.field is REAL
        ]
        choice = self.random.random()
        if known and choice < 0.35:
            s = self.pick(*known)
            at = Now(self.pick(0, 0, 1, 2))
            return Ref(s.name, frozenset(axes), REAL, Time.TOKEN, at)
        if choice < 0.5:
            return self.param(axes)
        if choice < 0.55:
            first = Ref("first", frozenset(), REAL, Time.TOKEN, Now(0))
            return mul(self.param(axes), add(num(2), first))
        return Map(self.map((D,), axes), self.input(self.pick(0, 0, 1)))

    def vector(self, axes, depth=2):
        """A real token-wise value with exactly these axes."""
        if depth == 0:
            return self.leaf(axes)
        part = depth - 1
        match self.random.randrange(14):
            case 0 | 1 | 2:
                return prim(self.pick(*ELEMENTWISE), self.vector(axes, part))
            case 3:
                inner = self.vector(self.subset(axes), part)
                return mul(self.vector(axes, part), inner)
            case 4:
                return add(self.vector(axes, part), self.vector(axes, part))
            case 5 if N not in axes:
                return self.reduced(axes, part)
            case 6 if axes:
                return prim(self.pick(*ALONG), self.vector(axes, part), axis=self.pick(*axes))
            case 7:
                return Series(self.pick(1, 2, 3), self.vector(axes, part))
            case 8:
                below = add(ONE, power(self.vector(axes, part), num(2)))
                return div(self.vector(axes, part), below)
            case 9:
                exponent = num(self.pick(2, 3, Fraction(1, 2), Fraction(-3, 2)))
                return Pow(prim("softplus", self.vector(axes, part)), exponent)
            case 10:
                return prim("exp", mul(num(Fraction(1, 4)), self.vector(axes, part)))
            case 11:
                z = self.complex_vector(axes, part)
                return prim(self.pick("re", "im", "abs"), z)
            case 12 if D in axes and self.streams:
                return self.filtered(axes)
            case 13 if N in axes:
                inner = self.vector((*(a for a in axes if a != N), N), part)
                return Rename(COPY, N, Rename(N, COPY, inner))
        return self.leaf(axes)

    def reduced(self, axes, depth):
        arg = self.vector((*axes, N), depth)
        how = self.pick(Reduction.SUM, Reduction.MEAN, Reduction.MAX)
        return Reduce(how, N, arg)

    def filtered(self, axes):
        weight = self.param((*self.subset(axes), T))
        known = [
            s
            for s in self.streams[: self.limit]
            if s.axes == tuple(sorted(axes)) and s.field is REAL
        ]
        if not known:
            return self.leaf(axes)
        s = self.pick(*known)
        return Fir(T, weight, Ref(s.name, frozenset(axes), REAL, Time.TOKEN, Now(self.pick(0, 1))))

    def complex_vector(self, axes, depth=1):
        match self.random.randrange(4):
            case 0:
                return prim("cplx", self.vector(axes, depth), self.vector(axes, depth))
            case 1:
                return mul(self.vector(axes, depth), prim("cis", self.vector(axes, depth)))
            case 2:
                return prim("conj", mul(self.param(axes, COMPLEX), self.vector(axes, depth)))
        return mul(self.param(axes, COMPLEX), self.vector(axes, depth))

    def value(self, axes, kind=REAL, depth=2):
        return self.complex_vector(axes) if kind is COMPLEX else self.vector(axes, depth)

    # --- stages -----------------------------------------------------------------------------------

    def stage(self):
        direction = self.pick(Direction.FORWARD, Direction.FORWARD, Direction.BACKWARD)
        kinds = (REAL, REAL, COMPLEX)
        made = [
            (self.fresh("s"), self.pick(*SHAPES), self.pick(*kinds))
            for _ in range(self.pick(1, 1, 2))
        ]
        blocks = tuple(
            Block(
                state,
                axes,
                kind,
                tuple(
                    self.factor(state, axes, kind, made, int(direction) if level == 0 else 0)
                    for level in range(self.pick(1, 1, 2, 3))
                ),
                None,
            )
            for state, axes, kind in made
        )
        self.stages.append(Stage(direction, blocks))
        self.before |= {b.state: len(self.streams) for b in blocks}

    def factor(self, state, axes, kind, blocks, lag):
        terms = []
        if self.chance(0.85):
            size = prim("sigmoid", self.vector(self.subset(axes), 1))
            turn = kind is COMPLEX and self.chance(0.5)
            left = mul(size, prim("cis", self.vector(self.subset(axes), 1))) if turn else size
            terms.append(Term(state, lag, left, frozenset(), ONE))
        for other, source, field in blocks:
            if field is COMPLEX and kind is REAL:
                continue
            if self.chance(0.35 if other == state else 0.6):
                term = self.term(other, source, axes, lag, kind)
                plain = not term.over and term.matrix is None and term.after is None
                if other != state or not plain or not terms:
                    terms.append(term)
        drives = tuple(self.drive(axes, kind) for _ in range(self.pick(0, 1, 2) if lag == 0 else 1))
        return Factor(tuple(terms), drives)

    def term(self, state, source, target, lag, kind=REAL):
        """A term from one shape to another, at random: contraction, expansion, matrix."""
        matrix = after = None
        inner, outer = source, target
        if N in source and self.chance(0.25):
            matrix = self.map((N,), (self.pick(N, P) if P not in source else N,))
            inner = tuple(a for a in source if a != N) + matrix.target
        if N in target and self.chance(0.25):
            after = self.map((self.pick(N, D) if D not in target else N,), (N,))
            outer = tuple(a for a in target if a != N) + after.source
        kept = frozenset(a for a in inner if a in outer and self.chance(0.6))
        over = frozenset(inner) - kept
        scale = num(Fraction(1, 4))
        left_axes = (frozenset(outer) - kept) | frozenset(self.subset(sorted(kept)))
        left = mul(scale, prim("tanh", self.vector(tuple(sorted(left_axes)), 1)))
        right = prim("sin", self.value(tuple(self.subset(sorted(inner))), REAL, 1))
        if kind is COMPLEX and self.chance(0.5):
            right = mul(right, prim("cis", self.vector((), 1)))
        return Term(state, lag, left, over, right, matrix, after)

    def drive(self, axes, kind):
        key_axes = self.subset(axes)
        stream_axes = tuple(a for a in axes if a not in key_axes or self.chance(0.2))
        field = self.pick(REAL, kind)
        return Drive(self.value(key_axes, field, 1), self.vector(stream_axes, 1))

    # --- read-outs --------------------------------------------------------------------------------

    def states(self):
        return [(b, s.direction) for s in self.stages for b in s.blocks]

    def read(self, axes):
        """A real read-out with these axes."""
        return self.read_of(*self.pick(*self.states()), axes)

    def read_of(self, block, direction, axes):
        limit, self.limit = self.limit, self.before[block.state]
        out = self.made_read(block, direction, axes)
        self.limit = limit
        return out

    def made_read(self, block, direction, axes):
        lag = self.pick(0, 0, int(direction))
        term = self.term(block.state, block.axes, axes, lag, block.field)
        term = Term(term.source, lag, mul(num(4), term.left), *_rest(term))
        direct = self.vector(axes, 1) if self.chance(0.4) else None
        out = Read((term,), direct)
        if self.chance(0.3):
            more = self.term(block.state, block.axes, axes, lag, block.field)
            out = Read((term, more), direct)
        return Cast(self.pick(*ComplexPart), out) if self.is_complex(out) else out

    def is_complex(self, tree):
        return read_out_type(tree, self.system(Direct(ONE), ()))[1] is COMPLEX

    def tree(self, axes, depth=2):
        if depth == 0:
            return self.read(axes)
        part = depth - 1
        match self.random.randrange(9):
            case 0:
                return Gate(self.vector(self.subset(axes), 1), self.tree(axes, part))
            case 1:
                guard = self.pick(
                    Guard(GuardKind.MAX_ABS, ONE), Guard(GuardKind.MAX_ABS, num(Fraction(1, 3)))
                )
                return Ratio(self.tree(axes, part), self.read(self.subset(axes)), guard)
            case 2:
                below = Post("softplus", (self.read(self.subset(axes)),))
                constant = Guard(GuardKind.ADD, num(Fraction(1, 10)))
                return Ratio(self.tree(axes, part), below, constant)
            case 3:
                return Sum((self.tree(axes, part), self.tree(axes, part)))
            case 4:
                return Product((self.tree(axes, part), self.tree(self.subset(axes), part)))
            case 5:
                return Post(self.pick(*ELEMENTWISE), (self.tree(axes, part),))
            case 6 if axes:
                return Post(self.pick(*ALONG), (self.tree(axes, part),), self.pick(*axes))
            case 7 if N not in axes:
                if self.chance(0.5):
                    return SumOver(N, Product((self.tree((*axes, N), part), self.read((N,)))))
                return MapOut(self.map((N,), ()), self.tree((*axes, N), part))
            case 8:
                return Sum((self.cache(axes), Direct(self.vector(axes, 1))))
        return self.read(axes)

    def cache(self, axes):
        """Σ over j of something that does not separate."""
        here, there = (Stream(self.fresh("x"), self.vector((N,), 1), (N,), REAL) for _ in range(2))
        value = Stream(self.fresh("x"), self.vector(axes, 1), tuple(sorted(axes)), REAL)
        self.streams += [here, there, value]

        def at(s, index):
            return Ref(s.name, frozenset(s.axes), REAL, Time.TOKEN, index)

        relation = self.pick(Relation.UP_TO, Relation.BEFORE, Relation.FROM, Relation.AFTER)
        score = total((N,), mul(at(here, Now(self.pick(0, 1))), at(there, Bound("j"))))
        match self.random.randrange(3):
            case 0:
                score = prim("exp", mul(num(Fraction(1, 4)), score))
            case 1:
                score = prim("sigmoid", add(score, self.param(())))
            case 2:
                score = Pow(prim("sigmoid", score), Lag((("i", 1), ("j", -1)), 0))
        lag = self.pick(0, 0, 1)
        shifted = Bound("j", self.pick(0, 1))
        body = mul(score, at(value, shifted))
        return Cache(Past("j", relation, body, None, lag), "the score does not separate")

    # --- the whole --------------------------------------------------------------------------------

    def system(self, value, axes):
        copies = Dimension(COPY, None, False)
        return System(
            name="random",
            doc=None,
            axes=(*(Dimension(a, None, False) for a in (D, H, N, P, T)), copies),
            inputs=(Tensor("u", (D,)),),
            params=tuple(self.params),
            buffers=(),
            abstracts=(),
            streams=tuple(self.streams),
            stages=tuple(self.stages),
            outputs=(Output("y", value, tuple(sorted(axes))),),
            definition=(),
            claims=(),
            derivation=(),
        )

    def make(self):
        for _ in range(self.random.randrange(1, 4)):
            axes = self.pick(*SHAPES)
            self.streams.append(Stream(self.fresh("x"), self.vector(axes), axes, REAL))
        for k in range(self.pick(1, 2, 2)):
            self.stage()
            if k == 0 and self.chance(0.6):
                axes = self.pick(*SHAPES)
                tree = self.tree(axes, 1)
                self.streams.append(Stream(self.fresh("r"), tree, axes, REAL))
        axes = self.pick(*SHAPES)
        tree = self.tree(axes, 2)
        if self.chance(0.3):
            tree = Sum((tree, Gate(ones(axes), self.tree(axes, 1))))
        # every state is read
        tree = Sum((tree, *(self.read_of(b, d, axes) for b, d in self.states())))
        return self.system(tree, axes)


def _rest(term):
    return term.over, term.right, term.matrix, term.after


def kinds_of(value, found=None):
    """Returns the names of all classes that occur in a value."""
    found = set() if found is None else found
    if isinstance(value, tuple | frozenset):
        for v in value:
            kinds_of(v, found)
    elif hasattr(value, "__dataclass_fields__"):
        found.add(type(value).__name__)
        for name in value.__dataclass_fields__:
            if name != "type":
                kinds_of(getattr(value, name), found)
    return found


def random_system(seed):
    """Returns a System that the seed determines; it keeps the invariants of Systems."""
    system = Maker(seed).make()
    verify(system)
    return system
