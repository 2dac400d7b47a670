"""Hand-built systems, one for each shape a transition, a read or a read-out can have."""

from __future__ import annotations

from dsfc.derive.decay import decay_of
from dsfc.expr.build import ONE, div, mul, neg, num, prim, sub, total
from dsfc.expr.declarations import Dimension, MapTensor, Tensor
from dsfc.expr.over_time import Past, Relation
from dsfc.expr.tree import Axis, Bound, Field, Fir, LinearMap, Map, Now, Param, Ref, Time
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

D, H, N, P, T = Axis(0, "d"), Axis(1, "h", True), Axis(2, "n"), Axis(3, "p"), Axis(4, "t")
AXES = (D, H, N, P, T)
SIZES = {"d": 3, "h": 2, "n": 2, "p": 3, "t": 3}
FREE = frozenset()


def ref(name, *axes, kind=Field.REAL, lag=0):
    return Ref(name, frozenset(axes), kind, Time.TOKEN, Now(lag))


def param(name, *axes, kind=Field.REAL):
    return Param(name, frozenset(axes), kind)


def linear(name, source, target, each=(), kind=Field.REAL):
    return LinearMap(name, each, source, target, kind)


U = ref("u", D)
W_Q, W_K, W_V = (linear(w, (D,), t) for w, t in (("W_Q", (H, N)), ("W_K", (H, N)), ("W_V", (H, P))))
QKV = (
    Stream("q", Map(W_Q, U), (H, N), Field.REAL),
    Stream("k", Map(W_K, U), (H, N), Field.REAL),
    Stream("v", Map(W_V, U), (H, P), Field.REAL),
)
Q, K, V = ref("q", H, N), ref("k", H, N), ref("v", H, P)
MAPS = tuple(MapTensor(m) for m in (W_Q, W_K, W_V))


def block(name, axes, *chain, kind=Field.REAL, decay=None):
    return Block(name, axes, kind, chain, None if decay is None else decay_of(decay))


def diagonal(state, left, *drives, lag=1):
    return Factor((Term(state, lag, left, FREE, ONE),), tuple(Drive(k, v) for k, v in drives))


def read(state, right, over, left=ONE, lag=0, direct=None, matrix=None):
    return Read((Term(state, lag, left, frozenset(over), right, matrix),), direct)


def system(name, streams, stages, y, axes, params=(), inputs=(), kind=Field.REAL):
    return System(
        name=name,
        doc=None,
        axes=tuple(Dimension(a, None, False) for a in AXES),
        inputs=(Tensor("u", (D,)), *inputs),
        params=params,
        buffers=(),
        abstracts=(),
        streams=streams,
        stages=stages,
        outputs=(Output("y", y, axes, kind),),
        definition=(),
        claims=(),
        derivation=(),
    )


def forward(*blocks):
    return Stage(Direction.FORWARD, blocks)


def attention():
    eta = Stream("eta", prim("exp", total((D,), mul(param("w", D), U))), (), Field.REAL)
    s = block("S", (H, N, P), diagonal("S", ONE, (K, V)))
    y = Gate(div(ONE, ref("eta")), read("S", Q, (N,)))
    return system("attention", (*QKV, eta), (forward(s),), y, (H, P), (*MAPS, Tensor("w", (D,))))


def gated():
    """A decay per key, of the token and the one before it."""
    w_g = linear("W_g", (D,), (H, N))
    gate = Stream("g", prim("sigmoid", Map(w_g, ref("u", D, lag=1))), (H, N), Field.REAL)
    s = block("S", (H, N, P), diagonal("S", ref("g", H, N), (K, V)), decay=ref("g", H, N))
    y = Post("rmsnorm", (read("S", Q, (N,), left=num(2), direct=V),), P)
    return system("gated", (*QKV, gate), (forward(s),), y, (H, P), (*MAPS, MapTensor(w_g)))


def ratio():
    lam = prim("exp", neg(prim("exp", param("omega", H, N))))
    bonus = mul(param("bonus", H, N), prim("exp", K))
    s = block("S", (H, N, P), diagonal("S", lam, (prim("exp", K), V)))
    z = block("z", (H, N), diagonal("z", lam, (prim("exp", K), ONE)))
    num_ = read("S", Q, (N,), lag=1, direct=mul(total((N,), mul(Q, bonus)), V))
    den = read("z", Q, (N,), lag=1, direct=total((N,), mul(Q, bonus)))
    y = Ratio(num_, den, Guard(GuardKind.MAX_ABS, ONE))
    params = (*MAPS, Tensor("omega", (H, N)), Tensor("bonus", (H, N)))
    return system("ratio", QKV, (forward(s), forward(z)), y, (H, P), params)


def delta():
    """Decay, then a rank-one update: a chain of two factors."""
    w_a = linear("w_a", (D,), (H,))
    a = Stream("a", prim("sigmoid", Map(w_a, U)), (H,), Field.REAL)
    k = Stream("kn", prim("l2norm", K, axis=N), (H, N), Field.REAL)
    kn, alpha = ref("kn", H, N), ref("a", H)
    low_rank = Factor(
        (
            Term("S", 0, ONE, FREE, ONE),
            Term("S", 0, neg(mul(alpha, kn)), frozenset({N}), kn),
        ),
        (Drive(mul(alpha, kn), V),),
    )
    s = block("S", (H, N, P), diagonal("S", alpha), low_rank)
    y = read("S", Q, (N,))
    return system("delta", (*QKV, a, k), (forward(s),), y, (H, P), (*MAPS, MapTensor(w_a)))


def complex_lti():
    c = Field.COMPLEX
    lam = prim("exp", prim("cplx", neg(prim("exp", param("a", D, N))), param("om", D, N)))
    b = mul(param("B", D, N, kind=c), div(sub(lam, ONE), lam))
    x = block("x", (D, N), diagonal("x", lam, (b, U)), kind=c)
    read_x = read("x", param("C", D, N, kind=c), (N,))
    y = Sum((Gate(num(2), Cast(ComplexPart.RE, read_x)), Direct(mul(param("Dd", D), U))))
    params = (
        Tensor("a", (D, N)),
        Tensor("om", (D, N)),
        Tensor("B", (D, N), c),
        Tensor("C", (D, N), c),
        Tensor("Dd", (D,)),
    )
    return system("complex_lti", (), (forward(x),), y, (D,), params)


def rotating():
    """A complex decay that varies in time, real keys and values, imaginary part read."""
    w_r, w_t = linear("w_r", (D,), (H,)), linear("w_t", (D,), (H,))
    lam = mul(prim("sigmoid", Map(w_r, U)), prim("cis", Map(w_t, U)))
    s = block("S", (H, N, P), diagonal("S", lam, (K, V)), kind=Field.COMPLEX)
    y = Product(
        (Cast(ComplexPart.RE, read("S", Q, (N,))), Cast(ComplexPart.IM, read("S", Q, (N,))))
    )
    params = (*MAPS, MapTensor(w_r), MapTensor(w_t))
    return system("rotating", QKV, (forward(s),), y, (H, P), params)


def dense():
    """x = g * A x[i-1] + B u, y = C x, with matrices A: n -> n, and a filter on u."""
    a, b = linear("A", (N,), (N,)), linear("Bm", (D,), (N,))
    c = linear("Cm", (N,), (D,), kind=Field.COMPLEX)
    filtered = Stream("f", Fir(T, param("taps", D, T), U), (D,), Field.REAL)
    x = block(
        "x",
        (N,),
        Factor(
            (
                Term("x", 1, prim("sigmoid", Map(b, U)), FREE, ONE, a),
                Term("x", 1, prim("tanh", Map(b, U)), FREE, ONE, None, a),
            ),
            (Drive(ONE, Map(b, ref("f", D))),),
        ),
    )
    read_x = Read((Term("x", 0, ONE, FREE, ONE, None, c),))
    y = Sum((Cast(ComplexPart.RE, read_x), Post("tanh", (Cast(ComplexPart.IM, read_x),))))
    params = (MapTensor(a), MapTensor(b), MapTensor(c), Tensor("taps", (D, T)))
    return system("dense", (filtered,), (forward(x),), y, (D,), params)


def coupled():
    """Two states in one stage, one with a chain of two, cross terms that contract and expand."""
    w = linear("W", (D,), (N,))
    g = prim("sigmoid", Map(w, U))
    a = block(
        "a",
        (D, N),
        Factor(
            (
                Term("a", 1, g, FREE, ONE),
                Term("b", 1, U, FREE, g),
            ),
            (Drive(Map(w, U), U),),
        ),
        Factor((Term("a", 0, g, FREE, ONE), Term("b", 0, prim("tanh", U), FREE, ONE)), ()),
    )
    b = block(
        "b",
        (N,),
        Factor(
            (
                Term("b", 1, num(0), FREE, ONE),
                Term("a", 1, g, frozenset({D, N}), mul(U, g)),
            ),
            (Drive(g, ONE),),
        ),
    )
    y = SumOver(N, Product((read("a", ONE, ()), read("b", ONE, (), lag=1))))
    return system("coupled", (), (forward(a, b),), y, (D,), (MapTensor(w),))


def cascade():
    """A state whose decay reads an earlier state; a state that runs backwards."""
    w = linear("W", (D,), (D,))
    s1 = block("m", (D,), diagonal("m", prim("sigmoid", param("r", D)), (ONE, U)))
    gate = Stream("gate", Post("sigmoid", (read("m", ONE, ()),)), (D,), Field.REAL)
    s2 = block("x", (D,), diagonal("x", ref("gate", D), (ref("gate", D), Map(w, U))))
    back = Block("z", (D,), Field.REAL, (diagonal("z", ref("gate", D), (ONE, U), lag=-1),), None)
    y = Sum(
        (
            MapOut(w, read("x", ONE, ())),
            read("z", ONE, (), lag=-1, left=ref("gate", D)),
        )
    )
    stages = (forward(s1), forward(s2), Stage(Direction.BACKWARD, (back,)))
    return system("cascade", (gate,), stages, y, (D,), (MapTensor(w), Tensor("r", (D,))))


def cached():
    """Softmax attention: sums that have no finite state."""
    score = prim("exp", total((N,), mul(Q, Ref("k", K.over, K.kind, Time.TOKEN, Bound("j")))))
    v = Ref("v", V.over, V.kind, Time.TOKEN, Bound("j"))
    up_to = Relation.UP_TO
    num_ = Cache(Past("j", up_to, mul(score, v)), "exp(q · k[j]) does not separate")
    den = Cache(Past("j", up_to, mul(score, param("s", H))), "exp(q · k[j]) does not separate")
    y = Ratio(num_, den)
    return system("cached", QKV, (), y, (H, P), (*MAPS, Tensor("s", (H,))))


ALL = {
    f.__name__: f()
    for f in (
        attention,
        gated,
        ratio,
        delta,
        complex_lti,
        rotating,
        dense,
        coupled,
        cascade,
        cached,
    )
}
