"""Small Systems written by hand: each shows one thing a System can hold."""

from __future__ import annotations

from dsfc.expr.build import MINUS_ONE, ONE, ZERO, add, div, mul, neg, num, prim, total
from dsfc.expr.declarations import Dimension, MapTensor, Provenance, Tensor
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Map, Now, Ref, Time
from dsfc.system.ir import (
    Block,
    Coupling,
    CouplingKind,
    Decay,
    Direction,
    Drive,
    Factor,
    Gate,
    Guard,
    GuardKind,
    LogForm,
    Output,
    Ratio,
    Read,
    Stage,
    Stream,
    System,
    Term,
)

D, H, N, P = Axis(0, "d"), Axis(1, "h", heads=True), Axis(2, "n"), Axis(3, "p")
NONE: frozenset[Axis] = frozenset()


def token(name: str, *axes: Axis, lag: int = 0) -> Ref:
    return Ref(name, frozenset(axes), Field.REAL, Time.TOKEN, Now(lag))


U, Q, K, V = token("u", D), token("q", H, N), token("k", H, N), token("v", H, P)
ETA, BETA, ALPHA, W = token("eta", H), token("beta", H), token("alpha", H), token("w", H, N)
MAPS = {
    "q": LinearMap("W_Q", (), (D,), (H, N)),
    "k": LinearMap("W_K", (), (D,), (H, N)),
    "v": LinearMap("W_V", (), (D,), (H, P)),
    "eta": LinearMap("w_eta", (), (D,), (H,)),
    "beta": LinearMap("w_beta", (), (D,), (H,)),
    "alpha": LinearMap("w_alpha", (), (D,), (H,)),
    "w": LinearMap("W_w", (), (D,), (H, N)),
}
NO_DECAY = Decay(ONE, ZERO, None, LogForm.EXACT)


def stream(name: str, around=lambda x: x) -> Stream:
    value = around(Map(MAPS[name], U))
    return Stream(name, value, tuple(sorted(value.axes)), Field.REAL)


def read(source: str, right: Expr, over=(N,), left: Expr = ONE, lag: int = 0) -> Term:
    return Term(source, lag, left, frozenset(over), right)


def diagonal(source: str, value: Expr, lag: int = 1) -> Term:
    return Term(source, lag, value, NONE, ONE)


def system(name, streams, stages, value, axes=(H, P), definition=()) -> System:
    used = [s.name for s in streams]
    dimensions = (
        Dimension(D, None, False),
        Dimension(H, num(2), True),
        Dimension(N, None, False),
        Dimension(P, None, False),
    )
    return System(
        name,
        None,
        dimensions,
        (Tensor("u", (D,)),),
        tuple(MapTensor(MAPS[n]) for n in used),
        (),
        (),
        tuple(streams),
        tuple(stages),
        (Output("y", value, axes),),
        tuple(definition),
        (),
        (),
    )


def normalized() -> System:
    """Normalised attention, lowered: identity transition, post-scale 1 / η."""
    s = Block(
        "S", (H, N, P), Field.REAL,
        (Factor((diagonal("S", ONE),), (Drive(K, V),)),),
        NO_DECAY, declared=False, provenance=Provenance("Sieber et al. 2024 eq. 22"),
    )  # fmt: skip
    value = Gate(div(ONE, ETA), Read((read("S", Q),)))
    streams = [stream(n) for n in ("q", "k", "v")] + [stream("eta", lambda x: prim("exp", x))]
    return system("normalized", streams, [Stage(Direction.FORWARD, (s,))], value)


def ratio() -> System:
    """Linear attention with a decay per key: numerator over guarded denominator."""
    log = neg(prim("softplus", W))
    decay = Decay(prim("exp", log), log, None, LogForm.EXACT)
    s = Block(
        "S", (H, N, P), Field.REAL,
        (Factor((diagonal("S", decay.value),), (Drive(K, V),)),), decay,
    )  # fmt: skip
    z = Block(
        "z", (H, N), Field.REAL,
        (Factor((diagonal("z", decay.value),), (Drive(K, ONE),)),), decay,
    )  # fmt: skip
    value = Ratio(Read((read("S", Q),)), Read((read("z", Q),)), Guard(GuardKind.MAX_ABS, num(1)))
    streams = [stream(n) for n in ("q", "k", "v", "w")]
    stages = [Stage(Direction.FORWARD, (s,)), Stage(Direction.FORWARD, (z,))]
    return system("ratio", streams, stages, value)


def delta() -> System:
    """Gated delta rule: a chain of a diagonal and a rank-one factor."""
    chain = (
        Factor((diagonal("S", ALPHA),), ()),
        Factor(
            (
                diagonal("S", ONE, lag=0),
                Term("S", 0, mul(MINUS_ONE, BETA, K), frozenset({N}), K),
            ),
            (Drive(mul(BETA, K), V),),
        ),
    )
    decay = Decay(ALPHA, prim("log", ALPHA), None, LogForm.LOG_OF)
    s = Block("S", (H, N, P), Field.REAL, chain, decay)
    streams = [stream(n) for n in ("q", "k", "v", "beta")] + [
        stream("alpha", lambda x: prim("sigmoid", x))
    ]
    return system("delta", streams, [Stage(Direction.FORWARD, (s,))], Read((read("S", Q),)))


def before() -> System:
    """A read before the update, with a direct term and a decay coupled to the key."""
    coupling = Coupling(CouplingKind.ONE_MINUS)
    one_minus = add(ONE, neg(ALPHA))
    decay = Decay(ALPHA, prim("log", ALPHA), None, LogForm.LOG_OF)
    s = Block(
        "S", (H, N, P), Field.REAL,
        (Factor((diagonal("S", ALPHA),), (Drive(mul(one_minus, K), V, coupling),)),), decay,
    )  # fmt: skip
    direct = mul(total((N,), mul(Q, K)), V)
    streams = [stream(n) for n in ("q", "k", "v", "alpha")]
    value = Read((read("S", Q, lag=1),), direct)
    return system("before", streams, [Stage(Direction.FORWARD, (s,))], value)


def both_ways() -> System:
    """A forward and a backward stage, added up in one read."""
    blocks = [
        Block(
            name, (H, N, P), Field.REAL,
            (Factor((diagonal(name, ALPHA, lag=lag),), (Drive(K, V),)),),
            Decay(ALPHA, prim("log", ALPHA), None, LogForm.LOG_OF),
        )
        for name, lag in (("S", 1), ("R", -1))
    ]  # fmt: skip
    stages = [Stage(d, (b,)) for d, b in zip(Direction, blocks, strict=True)]
    streams = [stream(n) for n in ("q", "k", "v", "alpha")]
    value = Read((read("S", Q), read("R", Q, lag=-1)))
    return system("both_ways", streams, stages, value)


def dense() -> System:
    """x = A x[i-1] + B u, y = C x: maps as transition, input and output."""
    a = LinearMap("A", (), (N,), (N,))
    b, c = LinearMap("B", (), (D,), (N,)), LinearMap("C", (), (N,), (D,))
    x = Block(
        "x", (N,), Field.REAL,
        (Factor((Term("x", 1, ONE, NONE, ONE, a),), (Drive(ONE, Map(b, U)),)),), None,
    )  # fmt: skip
    value = Read((Term("x", 0, ONE, NONE, ONE, c),))
    return system("dense", [], [Stage(Direction.FORWARD, (x,))], value, (D,))


MAKERS = {f.__name__: f for f in (normalized, ratio, delta, before, both_ways, dense)}
