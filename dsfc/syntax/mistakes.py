"""The table of common mistakes: examples, each with what to say about it.

`recognise.py` tells by them which mistake a text has.
"""

from __future__ import annotations

from dataclasses import dataclass

# The automaton is in another state at the first, the second and a later definition of a body.
_BEFORE = (
    "mixer a {\n ",
    "mixer a {",
    "mixer a {\n dims d\n ",
    "mixer a {\n dims d\n e = 1\n ",
    "modifier a on x {\n ",
)
_AFTER = "\n z = 1\n}\n"
_PRODUCTS = "a product is `·` (sums over a shared axis), `*` (elementwise) or `⊗` (outer)"


@dataclass(frozen=True, slots=True)
class Mistake:
    """What to say, and wrong texts it is to be said about.

    Attributes:
        label: the message; it says what to write instead.
        items: wrong definitions, as they would stand in a mixer.
        units: wrong texts, whole.
        near: what the tokens before the stop, joined by blanks, must end with.
        at: what the token at the stop must match; any, if it is empty.
    """

    label: str
    items: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    near: str = ""
    at: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The examples as whole texts."""
        return (*(start + item + _AFTER for item in self.items for start in _BEFORE), *self.units)


MISTAKES: tuple[Mistake, ...] = (
    # Strings and transposition
    Mistake(
        "no function takes a string; axes have names, so products say theirs: `q · S`, `k ⊗ v`",
        ('y = f("hn,hnp->hp", q)', "y = f('hn,hnp->hp', q)"),
        near=r"\(",
    ),
    Mistake(
        "nothing is transposed; write `k ⊗ v` for the outer product, `q · k` to sum over an axis",
        (
            "y = k' * v",
            "y = k' v",
            "y = v + k'",
            "y = k[i-1]' * v",
            "y = (k)' * v",
            "y = f(k)' * v",
        ),
        near=r"= .*[\w)\]]",
    ),
    Mistake(
        "a sum over the tokens so far is `sum[j ≤ i](…)`, one over an axis `sum[n](…)`",
        ("y = sum[j = 1](q)", "y = Σ[j=0:i](q)", "y = sum[j in 1..i](q)", "y = sum[j=1..i](q)"),
        near=r"\b(sum|prod|Σ|Π) \[ \w+( in)?",
    ),
    # Products
    Mistake(
        "the ASCII outer product is `(*)`; write `k (*) v` or `k ⊗ v`",
        ("y = k (x) v", "y = k[i-1] * k (x) v"),
        near=r"\( x \)",
    ),
    Mistake(
        "`×` joins axes in shapes; elementwise is `*`, the outer product is `⊗` or `(*)`",
        ("y = k × v", "y = (k × v)", "y = k (×) v"),
    ),
    Mistake(
        "a sum needs parentheses: `sum[j ≤ i](…)`",
        ("y = sum[n] q", "y = Σ[j <= i] q[j]", "y = sum[n] 2"),
        near=r"\b(sum|mean|prod|Σ|Π|max) \[[^\]]*\]",
    ),
    Mistake(
        f"a parenthesis cannot be applied; {_PRODUCTS}",
        ("y = (q · k) v", "y = (q + k) 2", "y = (q)(k)", "y = (q + k)[i-1]"),
    ),
    Mistake(
        f"a call cannot be applied; {_PRODUCTS}",
        (
            "y = f(q) v",
            "y = f(q) 2",
            "y = f(q)(v)",
            "y = f(q, v) k",
            "y = f(f(q) k)",
            "y = (f(q, v) k)",
        ),
    ),
    Mistake(
        "a call cannot be indexed; index its argument, `f(q[i-1])`, or a name defined as the call",
        ("y = f(q)[i-1]",),
    ),
    Mistake(
        f"an indexed name cannot be applied; {_PRODUCTS}",
        ("y = q[i-1] v", "y = q[i-1] 2"),
    ),
    Mistake(
        "a number has no suffix; write `1e-6`",
        ("y = 1e-6f", "y = q + 1e-6f", "param a = 1e-6f", "param a : d = 1e-6f"),
        near=r"\d[eE][+-]?\d+",
        at=r"[fF]",
    ),
    Mistake(
        "a complex number is `cplx(a, b)`: write `cplx(0, 1)` for the imaginary unit",
        ("y = 1j v", "y = 1j * v", "y = f(1j * v)", "y = v + 1i", "y = 1j"),
        near=r"\d",
        at=r"[ij]",
    ),
    Mistake(
        "a number cannot be applied; write `*` for a product",
        ("y = 2 v", "y = 2 (v + q)", "y = 2 f(v)"),
    ),
    Mistake("a name is applied to a name; write `*` for a product", ("y = v 2", "y = W v 2")),
    Mistake(
        "a power is written `^`",
        ("y = q ** 2", "y = v * q ** 2", "f(l) = q ** l", "f(l) = v * q ** l", "y = W q ** 2"),
        near=r"\*",
    ),
    Mistake(
        "an inner product is written `q · k`",
        ("y = <q, k>", "y = 2 * <q, k>", "y = f(<q, k>)", "y = q + <q, k>"),
        near=r"[=*+(,-]",
        at="<",
    ),
    Mistake(
        "a number starts with a digit; write `0.5`",
        (
            "y = .5 * q",
            "y = 2 * .5",
            "y = q + .5",
            "y = f(.5)",
            "param a = .5",
            "param a : d = .5",
            "param a : d unit = .5",
            "const a = .5",
            "param b : d\n a : d unit = .5",
        ),
    ),
    Mistake(
        "the line above ends with a point, which is a product; a number ends with a digit: `1.0`",
        ("y = 1.", "param a = 1.", "param a : d = 1.", "param a : d unit = 1.", "const a = 1."),
        near=r"\d \. \w+",
        at="=",
    ),
    Mistake(
        "a number ends with a digit; write `1.0`",
        ("y = 1. * q", "y = q + 1. * v", "y = 1. / q", "y = f(1.)", "y = f(1., q)", "y = 1. + v"),
        ("mixer a { y = 1. }", "mixer a { param a = 1. }", "mixer a { param a : d = 1. }"),
        near=r"\d \.",
    ),
    Mistake(
        "the arrow belongs to the type of a map; in an expression write `W u`", ("y = q -> v",)
    ),
    # Definitions
    Mistake(
        "a line may break after an operator, not before it; end the line above with it",
        ("y = q\n + v", "y = q\n * v", "y = q\n / v", "y = q\n ⊗ v", "y = q\n · v"),
        near=r"\n",
    ),
    Mistake("a definition has one `=`", ("y == q",)),
    Mistake("a definition is written with `=` alone", ("y := q", "y : = q"), near=r":"),
    Mistake(
        "a derivative is written `x' = … by zoh(Δ)`", ("dx/dt = A * x",), near=r"\bd[a-zA-Z]\b"
    ),
    Mistake("write the update out: `S = S[i-1] + …`", ("S += q", "S -= q", "S *= q", "S /= q")),
    Mistake(
        "the left side is the bare name, `S = …` at token i; a function of the lag is `K(l) = …`",
        ("S[i] = q", "S[i-1] = q"),
    ),
    Mistake(
        "one name is defined at a time; separate definitions by `;` or a newline",
        ("q, k = W u, V u",),
    ),
    Mistake(
        "the output is the definition of `y`; write `y = …`",
        ("output y = q", "out y = q", "return y", "output q", "yield y"),
        near=r"\b(output|outputs|out|return|yield)",
    ),
    Mistake(
        "a function is written `f(x) = …`, and a mixer `mixer name { … }`",
        ("def f(x): return q", "f = lambda x: q", "y = lambda x: q", "fn f(x) = q"),
        near=r"\b(def|fn|func|function|lambda \w+)",
    ),
    Mistake(
        "a definition is `name = …`, without a word before it",
        ("let x = q", "var y = q"),
    ),
    Mistake(
        "an axis stands in brackets before the parenthesis: `softmax[n](x)`",
        ("y = f(q, dim = 1)", "y = f(axis = 1)", "y = f(W q, dim = 1)", "y = f(2 * q, axis=1)"),
        near=r"\b(dim|dims|axis|axes)",
    ),
    Mistake(
        "arguments have no names; write the value alone, `f(1)`",
        ("y = f(a = 1)", "y = f(q, a = 1)", "y = 2 * f(W q, a = 1)", "param w ~ f(a = 1)"),
        near=r"[(,] \w+",
    ),
    Mistake(
        "comparison is `==`",
        ("claim decay(S) = 1", "claim causal when a = 1", "y = f[j = i](q)"),
        near=r"\[[^\]\n;]*|\b(claim|when|and)\b[^\n;]*",
    ),
    Mistake(
        "the value after `=` is missing, or there is one `=` too many",
        ("y =", "y = ;", "y = q = v", "const P =", "param a =", "dims n ="),
    ),
    Mistake(
        "the last operand is missing",
        ("y = q + ;", "y = q * ;", "y = q ⊗ ;", "y = q · ;", "y = q ^ ;", "y = q / ;", "y = - ;"),
        (
            "mixer a { y = q + }",
            "mixer a { y = q * }",
            "mixer a { y = q ⊗ }",
            "mixer a { y = q · }",
            "mixer a { y = q ^ }",
            "mixer a { y = - }",
        ),
    ),
    Mistake(
        "two operators follow each other",
        ("y = q + * v", "y = q * + v", "y = + q", "y = (+ q)", "y = q ⊗ ⊗ v"),
    ),
    Mistake(
        "a decimal number has a point, `0.5`; definitions are separated by `;` or a newline",
        ("y = 0,5", "param a : d = 0,5", "param a = 0,5", "y = q * 0,5", "param b\n a : d = 0,5"),
        near=r"\d",
        at=r",",
    ),
    Mistake(
        "a definition has one value; separate definitions by `;` or a newline",
        ("y = q, v", "y = W q, x = v", "const a = b, c = 2"),
    ),
    Mistake("definitions are separated by `;` or a newline", ("y = q x = v",), near=r"\w"),
    Mistake("one string behind a definition is enough", ('y = q "a" "b"',)),
    Mistake(
        "a flow names its rule: `x' = … by zoh(Δ)`",
        ("x' = A * x", 'x\' = A * x "eq. 1"'),
        ("mixer a { x' = A * x }",),
    ),
    Mistake("the rule takes its step: `by zoh(Δ)`", ("x' = A * x by zoh",)),
    # Calls and indices
    Mistake(
        "a first value is a number, `= 0`, or a draw, `~ normal(0, 0.02)` or `~ uniform(-1, 1)`",
        ("param w ~ xavier()", "param w : d ~ zeros()", "param w : d = randn()"),
        near=r"\b(xavier|kaiming|glorot|he|zeros|ones|rand|randn)\w* \(",
    ),
    Mistake("a call needs an argument", ("y = f()", "y = sum[n]()")),
    Mistake("an argument is missing after `,`", ("y = f(q, )", "f(a, ) = a", "y = x[n, ]")),
    Mistake(
        "there are no slices, since axes have names; `s` alone is all of s at the present token",
        ("y = s[:, i]", "y = s[i, :]", "y = s[i:]", "y = s[i-1:]"),
        near=r"\[[^\]\n;]*",
        at=r":",
    ),
    Mistake("the brackets are empty", ("y = x[]", "y = sum[](q)")),
    Mistake(
        "there is no condition; write the value with `max(a, b)`, `relu(x)` or `abs(x)`",
        ("y = q if u > 0", "y = W q if u > 0", "y = if u > 0"),
        near=r"\bif [^;\n]*",
    ),
    Mistake(
        "a comparison stands in brackets and claims only",
        ("y = q < v", "y = (q < v)", "y = f(q < v)"),
    ),
    Mistake(
        "a function has plain names as arguments",
        ("f(2) = q", "f(a + b) = q", "f(q[j]) = q", "f(i-j) = q", "f(x, i-j) = q"),
        near=r"\([^)]*",
    ),
    # Declarations
    Mistake(
        "the axes follow a colon, `state S : h × n`; a bound is a flag, `unit` for (0, 1)",
        ("state S in R", "param a in (0, 1)"),
        at="in",
    ),
    Mistake(
        "a bound is a flag: `param a : d unit` is in (0, 1); the others are `positive`, `nonneg`, "
        "`nonzero`",
        (
            "param a : d in (0, 1)",
            "param W : d -> n in (0, 1)",
            "param a : d × n in (0, 1)",
            "param a : d > 0",
            "param a : d × n > 0",
            "param b : d\n a : d > 0",
            "param a > 0",
            "param b : d\n a : d × n in (0, 1)",
            "param b : d\n a : d in (0, 1)",
        ),
        at="in|[<>≤≥]=?",
    ),
    Mistake(
        "a first value follows `=` or `~`: `param b : d = 0`; a state starts at 0",
        (
            "param b : d init 0",
            "param b : d × n init 0",
            "param a : d\n b : d init 0",
            "param b : d S_0 = 0",
            "param b : d × n h0 = 0",
        ),
        at=r"init\w*|\w+_?0",
    ),
    Mistake(
        "a shape is its axes alone: `param b : d × n`",
        ("param b : R^d", "param b : R^(d * n)", "param a : d\n b : R^d", "param b : R * R^d"),
    ),
    Mistake(
        "axes are joined by `×`; names of one shape stand before the colon: `state s, t : d`",
        ("param w : d, n", "param w : d, t : d", "param b : d\n w : d, n", "param w : d × n, h"),
    ),
    Mistake(
        "an axis is a name: give it a size, `dims d, h, p = d / h`, and write `p`",
        ("param W : d -> h × d/h", "param w : d × n/h", "param b : d\n w : n/h", "param w : d/h"),
        at="/",
    ),
    Mistake(
        "axes are joined by `×` or `*`",
        (
            "param w : d n",
            "param W : d -> h x n",
            "param w : d x n",
            "param w : d × n x m",
            "param b : d\n w : d n",
        ),
    ),
    Mistake(
        "axes are joined by `×` or `*`, without brackets",
        (
            "param w : (d, n)",
            "param w : [d, n]",
            "param w [d]",
            "param b : d\n w : (d, n)",
            "param b : d\n w : [d, n]",
        ),
    ),
    Mistake(
        "the type follows a colon, and names are separated by commas: `param v, w : d × n`",
        ("param w (d, n)", "param W d -> n", "param w d", "state s t : d"),
    ),
    Mistake(
        "an axis is a name; give its size in `dims`",
        (
            "param w : 4",
            "param w : d × 4",
            "param W : d -> 4",
            "param b : d\n w : 4",
            "param b : d\n w : d × 4",
        ),
    ),
    Mistake("axes are separated by commas: `dims d, n`", ("dims d n", "dims d × n")),
    Mistake(
        "a flag stands after the axes, `param a : d unit`; without axes write `param a unit`",
        (
            "param positive a : d",
            "param b : d\n a : unit d",
            "state x : complex d",
            "param a : positive",
            "param a : unit = 1",
            "param b : d\n a : unit = 1",
        ),
    ),
    Mistake(
        "the initialiser comes last, after the flags",
        ("param a = 1 positive", "param a : d = 0 complex"),
    ),
    Mistake("a type is written once", ("param a = 1 : d", "param a : d : n")),
    Mistake(
        "`use` says where: `use modifier on name`",
        ("use short_conv", "use short_conv(q)", "use short_conv, gate on q"),
    ),
    Mistake(
        'the letters of a paper are `letters name "symbol"`, with commas between',
        (
            'paper "a", 2024, "t", letters',
            'paper "a", 2024, "t", letters = "x"',
            'paper "a", 2024, "t", letters: b "x"',
            'paper "a", 2024, "t", letters b',
            'paper "a", 2024, "t", letters b x',
            'paper "a", 2024, "t", letters b = "x"',
            'paper "a", 2024, "t", letters b: "x"',
            'paper "a", 2024, "t", letters b "x" c "y"',
            'paper "a", 2024, "t", letters b "x",',
            'paper "a", 2024, "t", letters b "x", "y"',
            'paper "a", 2024, "t" letters b "x"',
            'paper "a", 2024, "t" "eq. 1" letters b "x"',
            'paper "a", 2024, "t", doi "10.1000/182" letters b "x"',
        ),
        near=r'letters\b.*|"',
    ),
    Mistake(
        'a paper is `paper "authors", year, "title", arXiv "number"  "equation"`',
        (
            "paper gla",
            "paper 2024",
            'paper "a"',
            'paper "a" 2024',
            'paper "a", "t"',
            'paper "a", 2024',
            'paper "a", 2024 "t"',
            'paper "a", 2024, t',
            'paper "a", 2024, "t", "2312.06635"',
            'paper "a", 2024, "t", 2312.06635',
            'paper "a", 2024, "t", arXiv 2312.06635',
            'paper "a", 2024, "t", arXiv: "2312.06635"',
            'paper "a", 2024, "t", arXiv "2312.06635", "eq. 1"',
        ),
    ),
    Mistake(
        "a layer is `layer norm rms, gate silu`",
        (
            "layer norm",
            "layer norm = rms",
            "layer norm: rms",
            "layer norm rms gate silu",
        ),
    ),
    # Units
    Mistake(
        "the body stands in braces: `mixer name { … }`",
        units=(
            "mixer a\ny = q",
            "mixer a: y = q",
            'mixer a "t": y = q',
            'mixer a "t"\ny = q',
            "mixer a y = q",
            "mixer a = q",
            "mixer a(u) { }",
            "mixer a",
        ),
    ),
    Mistake(
        'a mixer has a name before its title: `mixer name "title" { … }`',
        units=('mixer "t" { }', "mixer { }"),
    ),
    Mistake(
        "a name is letters, digits and `_`",
        units=("mixer a-b { }", "mixer a.b { }", "mixer a/b { }"),
    ),
    Mistake(
        'a string stands in double quotes: `"title"`',
        units=("mixer a 'b' { }", "mixer a 't' extends b {}"),
    ),
    Mistake(
        "a base follows `extends`: `mixer name extends qkv { … }`",
        units=('mixer a "t" (b) { }',),
    ),
    Mistake(
        'the title stands before `extends`: `mixer name "title" extends qkv { … }`',
        units=('mixer a extends b "eq. 1" { }',),
    ),
    Mistake(
        "`extends` is followed by the name of a mixer",
        units=("mixer a extends { }", 'mixer a extends "b" { }'),
    ),
    Mistake(
        "a mixer extends one other",
        units=("mixer a extends b, c { }", "mixer a extends b extends c { }"),
    ),
    Mistake(
        "a modifier says what it calls its target: `modifier name on x { … }`",
        units=("modifier m { }", 'modifier m "s" { }'),
    ),
    Mistake(
        "a text consists of mixers and modifiers; write `mixer name { … }`",
        units=(
            "y = q",
            "dims d",
            "param w : d",
            "const a = 1",
            "use m on q",
            "claim causal",
            "a { y = q }",
        ),
    ),
    Mistake(
        "the `}` before closes the mixer; remove it, or move this line above it",
        units=("mixer a { y = q }\n w : d", "mixer a { y = q }\n w = 1", "mixer a { }\n param w"),
        near=r"\}\s*",
    ),
    Mistake("`}` closes nothing; remove it", units=("mixer a { y = q }\n}", "}")),
    Mistake(
        "braces cannot be nested; use parentheses in expressions",
        ("{ y = q }", "y = q_{", "y = {", "y = q + {"),
    ),
)
