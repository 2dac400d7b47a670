"""Every typing and well-formedness rule: the wrong spec, its code, its place, its message."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.diagnostics.catalogue import CODES, examples
from dsfc.diagnostics.report import Diagnostic, Severity, Stage

Problems = Callable[..., tuple[Diagnostic, ...]]

QKV = "mixer m extends qkv {{\n{}\n}}"
PLAIN = "mixer m {{\ndims d, n\ninput u : d\nparam W : d -> n; b : n\nk = W u\n{}\n}}"

# Rule, items of the mixer, code, the text that is underlined, what the message names.
TYPING = [
    ("T1", "param w : m\ny = w * q", "E-AXIS", "m", ["`w`", "`m` is not an axis", "d, h, n, p"]),
    ("T1 index", "y = sum[m](q)", "E-AXIS", "m", ["`m` is not an axis"]),
    (
        "T2",
        "param W : d × d\ny = W u",
        "E-AXIS-TWICE",
        "d",
        ["`W : d × d`", "twice", "write `d -> d`"],
    ),
    ("T3", "y = q + v", "E-SHAPE-ADD", "q + v", ["{h,n}", "{h,p}", "`⊗ ones[p]` and `⊗ ones[n]`"]),
    ("T3 minus", "y = q - sum[n](q)", "E-SHAPE-ADD", "q - sum[n](q)", ["{h,n} and {h}"]),
    ("T4", "y = q * v", "E-SHAPE-MUL", "q * v", ["`q` has {h,n}", "`v` has {h,p}", "write `⊗`"]),
    ("T4 power", "y = q ^ v", "E-SHAPE-MUL", "q ^ v", ["{h,n}", "{h,p}"]),
    (
        "T5",
        "y = q ⊗ k",
        "E-SHAPE-OUTER",
        "q ⊗ k",
        ["both sides have {n}", "`·`, which sums over `n`"],
    ),
    ("T6 none", "y = q · v", "E-SHAPE-DOT", "q · v", ["share none; write `⊗`"]),
    (
        "T6 two",
        "param w, x : d × n\ny = w · x",
        "E-SHAPE-DOT",
        "w · x",
        ["{d,n} and {d,n} share {d,n}", "`sum[n](w * x)`"],
    ),
    ("T7", "y = W_Q q", "E-SHAPE-MAP", "W_Q q", ["`W_Q` takes {d}", "got {h,n}"]),
    ("T7 call", "y = W_Q(q)", "E-SHAPE-MAP", "W_Q(q)", ["`W_Q` takes {d}"]),
    ("T8", "y = q v", "E-JUXTA", "q", ["`q` is not a map", "write `⊗`"]),
    ("T8 call", "y = q(v)", "E-JUXTA", "q(v)", ["`q` is not a map"]),
    ("T9 sum", "y = sum[p](q)", "E-SHAPE-SUM", "q", ["`q` has no axis `p`", "{h,n}"]),
    ("T9 norm", "y = l2norm[p](q)", "E-SHAPE-SUM", "q", ["`q` has no axis `p`"]),
    ("T9 divisor", "y = sum[n](q) / v", "E-SHAPE-DIV", "sum[n](q) / v", ["{h,p}", "{h}"]),
    (
        "T10 add",
        "state S : h × n × p\nS = S[i-1] + k\ny = q · S",
        "E-SHAPE-ADD",
        "S[i-1] + k",
        ["{h,n,p} and {h,n}"],
    ),
    (
        "T10",
        "state S : h × n × p\nS = k\ny = q · S",
        "E-SHAPE-STATE",
        "k",
        ["`S` has axes {h,n}", "`S` has {h,n,p}"],
    ),
    ("field", "y = cplx(q, q)", "E-FIELD", "y", ["the output `y` is complex"]),
    ("field argument", "y = relu(cis(q))", "E-FIELD", "cis(q)", ["`relu` takes real values"]),
    (
        "field state",
        "state S : h × n\nS = cis(k) * S[i-1]\ny = S",
        "E-FIELD",
        "cis(k) * S[i-1]",
        ["the update of `S` is complex"],
    ),
]

WELL_FORMED = [
    ("W1 axis", "n = 3\ny = q", "E-NAME", "n", ["`n` is an axis"]),
    ("W1 twice", "x = q\nx = k\ny = x", "E-NAME", "x", ["already defined"]),
    ("W1 time", "i = q\ny = k", "E-NAME", "i", ["the time index"]),
    ("W1 first", "first = q\ny = first", "E-NAME", "first", ["the first token"]),
    ("W1 output", "param y : n", "E-NAME", "y", ["the output"]),
    ("W1 function", "exp(x) = x\ny = q", "E-NAME", "exp", ["a function of the language"]),
    (
        "W2",
        "x = x[i-1] + q\ny = x",
        "E-RECURSION",
        "x",
        ["reads its own past (x → x[i-1])", "declare `state x : h × n`"],
    ),
    ("W3", "a = b + q\nb = a + k\ny = a", "E-RECURSION", "a", ["a → b → a"]),
    (
        "W3 state",
        "state S : h × n × p\nS = S + k ⊗ v\ny = q · S",
        "E-STATE-NOW",
        "S",
        ["state `S` reads its own present value", "`S[i-1]`"],
    ),
    (
        "W3 through",
        "state S, Z : h × n\nS = Z + k\nF = 2 * S\nZ = F + q\ny = S",
        "E-STATE-NOW",
        "Z",
        ["reads its own present value"],
    ),
    ("W4", "y = v[i+1]", "E-FUTURE", "v[i+1]", ["`v[i+1]` reads the future", "sum[j > i]"]),
    (
        "W4 sum",
        "y = sum[j ≤ i](v[j+1])",
        "E-FUTURE",
        "v[j+1]",
        ["`v[j+1]` reads the future"],
    ),
    (
        "W5",
        "state S : h × n\nS = S[i-2] + k\ny = S",
        "E-LAG",
        "S[i-2]",
        ["more than one step back", "register state"],
    ),
    (
        "W5 through",
        "state S : h × n\nF = S[i-1]\nS = F[i-1] + k\ny = S",
        "E-LAG",
        "F[i-1]",
        ["more than one step back"],
    ),
    (
        "W5 direction",
        "state S : h × n backward\nS = S[i-1] + k\ny = S",
        "E-DECL",
        "S[i-1]",
        ["it runs backward", "`S[i+1]`"],
    ),
    ("W6", "state S : h × n × p\ny = q · S", "E-STATE", "S", ["state `S` has no update"]),
    (
        "W9",
        "param c : h\ny = sum[j ≤ i](c^(i+j) * v[j])",
        "E-LAG-POWER",
        "(i+j)",
        ["must be a lag, `i - j` or `i - j - 1`", "grows with the position"],
    ),
    ("W9 position", "y = i * q", "E-LAG-POWER", "i * q", ["must be a lag"]),
    (
        "W10",
        "f(x) = x * q\ny = f(k)",
        "E-FUN",
        "q",
        ["function `f`", "not the stream `q`"],
    ),
    ("W10 uncalled", "f(x) = x * q\ny = k", "E-FUN", "q", ["function `f`", "`q`"]),
    ("W10 index", "f(x) = x * q[i-1]\ny = f(k)", "E-FUN", "q[i-1]", ["`q`"]),
    ("W11", "param b : n\ny = b[i-1] * q", "E-INDEX", "b[i-1]", ["`b` does not depend on time"]),
    (
        "W11 constant",
        "param b : n\nc = exp(b)\ny = c[i-1] * q",
        "E-INDEX",
        "c[i-1]",
        ["`c` does not depend on time"],
    ),
    (
        "W11 half",
        "const w = 1/2\ny = v[i-w]",
        "E-INDEX",
        "v[i-w]",
        ["minus a whole number"],
    ),
    ("W11 index", "y = v[j]", "E-INDEX", "v[j]", ["`sum[j ≤ i](…)`"]),
    (
        "W12",
        "param P : n\nstate x : h × n\nx' = k - P ⊗ sum[n](P * x) by zoh(1)\ny = x",
        "E-FLOW",
        "k - P ⊗ sum[n](P * x)",
        ["zoh needs a diagonal flow", "`x` has a low-rank part", "bilinear"],
    ),
    (
        "W12 rule",
        "state x : h × n\nx' = k - x by zho(1)\ny = x",
        "E-FLOW",
        "zho",
        ["no rule `zho`", "did you mean `zoh`?"],
    ),
    (
        "W12 step",
        "state x : h × n\nx' = k - x by zoh(v)\ny = x",
        "E-FLOW",
        "v",
        ["the step has axes {h,p}"],
    ),
    ("W12 state", "x' = k - x by zoh(1)\ny = x", "E-FLOW", "x", ["declare `state x : …`"]),
    (
        "W12 own step",
        "state x : h × n\nx' = k - x by zoh(sum[n](x))\ny = x",
        "E-FLOW",
        "x",
        ["the step reads `x` itself"],
    ),
    (
        "W12 circle",
        "state x, z : h × n\nx' = z - x by zoh(1)\nz' = F - z by zoh(1)\nF = 2 * x\ny = x",
        "E-FLOW",
        "z",
        ["`x`", "x → z → F → x", "one state"],
    ),
    ("W13", "use rotary on q\ny = q", "E-USE", "rotary", ["no modifier `rotary`"]),
    (
        "W13 near",
        "use short_con on q\ny = q",
        "E-USE",
        "short_con",
        ["no modifier `short_con`", "did you mean `short_conv`?"],
    ),
    (
        "W13 target",
        "use short_conv on W_Q\ny = q",
        "E-USE",
        "W_Q",
        ["`W_Q` is not a definition or an input"],
    ),
    ("unknown", "y = querry", "E-UNKNOWN-NAME", "querry", ["`querry` is not defined"]),
    ("unknown call", "y = sigmiod(q)", "E-UNKNOWN-NAME", "sigmiod", ["did you mean `sigmoid`?"]),
    ("map alone", "y = W_Q + q", "E-CALL", "W_Q", ["is a linear map; apply it"]),
    ("arity", "y = max(q)", "E-CALL", "max(q)", ["`max` takes 2 arguments, got 1"]),
    ("order", "y = taylor[h](q)", "E-ORDER", "h", ["`h`", "whole number"]),
    ("zero", "y = q / 0", "E-CALL", "0", ["divides by zero"]),
    ("init draw", "param w : n = normal(0, 1)\ny = w * q", "E-INIT", "normal(0, 1)", ["`normal`"]),
    (
        "init sequence",
        "param w : n ~ legs_frequency(n)\ny = w * q",
        "E-INIT",
        "legs_frequency(n)",
        ["along which axis"],
    ),
    (
        "init sequence fixed",
        "param w : n = legs_frequency[n](n)\ny = w * q",
        "E-INIT",
        "legs_frequency[n](n)",
        ["a draw follows `~`"],
    ),
    (
        "init sequence short",
        "param w : n ~ legs_frequency[n](3)\ny = w * q",
        "E-INIT",
        "~ legs_frequency[n](3)",
        ["3 values are fewer than the"],
    ),
    ("init axes", "param w : n = iota[p]\ny = w * q", "E-INIT", "= iota[p]", ["{p}", "{n}"]),
    ("init stream", "param w : n = q\ny = w * q", "E-INIT", "q", ["numbers, sizes and constants"]),
    ("init itself", "param w : n = w\ny = w * q", "E-INIT", "w", ["`w` reads `w`"]),
    ("init input", "input c : n\nparam w : n = c\ny = w * q", "E-INIT", "c", ["`w` reads `c`"]),
    (
        "init state",
        "state S : n\nparam w : n = S\nS = S[i-1] + w\ny = S * q",
        "E-INIT",
        "S",
        ["`w` reads `S`"],
    ),
    ("init past", "param w : n = w[i-1]\ny = w * q", "E-INIT", "w", ["`w` reads `w`"]),
    ("init first", "param w : n = first\ny = w * q", "E-INIT", "first", ["`w` reads `first`"]),
    (
        "init definition",
        "param b, w : n = exp(c)\nc = 2 * b\ny = w * q",
        "E-INIT",
        "c",
        ["reads `c`"],
    ),
    (
        "init later",
        "param w : n = exp(b)\n      b : n\ny = w * b * q",
        "E-INIT",
        "b",
        ["`w` reads `b`"],
    ),
    ("init map", "param w : d = W_V ones[d]\ny = W_V w", "E-INIT", "W_V", ["`w` reads `W_V`"]),
    ("init call", "param w : d = W_V(w)\ny = W_V w", "E-INIT", "W_V", ["`w` reads `W_V`"]),
    (
        "init abstract",
        "abstract φ : n -> n\nparam w : n = φ(ones[n])\ny = w * φ(q)",
        "E-INIT",
        "φ",
        ["`w` reads `φ`"],
    ),
    ("init time", "param w : n = i\ny = w * q", "E-INIT", "i", ["`w` reads the time `i`"]),
    (
        "init sum",
        "param w : n = sum[j ≤ i](1)\ny = w * q",
        "E-INIT",
        "sum[j ≤ i](1)",
        ["`w` has a sum over tokens"],
    ),
    (
        "init product",
        "param w : n = prod[0 < l ≤ i](2)\ny = w * q",
        "E-INIT",
        "prod[0 < l ≤ i](2)",
        ["`w` has a product over tokens"],
    ),
    ("init draw itself", "param w : n ~ normal(w, 1)\ny = w * q", "E-INIT", "w", ["`w` reads `w`"]),
    (
        "init function",
        "param b, w : n = f(2)\nf(x) = x * b\ny = w * f(q)",
        "E-INIT",
        "b",
        ["reads `b`"],
    ),
    ("const stream", "const c = q\ny = c * k", "E-CONST", "q", ["`c` reads `q`"]),
    ("const time", "const c = i\ny = c * k", "E-CONST", "i", ["`c` reads the time `i`"]),
    (
        "const sum",
        "const c = sum[j ≤ i](1)\ny = c * k",
        "E-CONST",
        "sum[j ≤ i](1)",
        ["`c` has a sum over tokens"],
    ),
    ("const param", "param b : n\nconst c = b\ny = c * k", "E-CONST", "b", ["`c` reads `b`"]),
    ("flags", "param w : n positive unit\ny = w * q", "E-DECL", None, ["both"]),
    ("backward", "param w : n backward\ny = w * q", "E-DECL", None, ["only a state"]),
    ("size", "dims m = 1/2\nparam w : m\ny = w ⊗ q", "E-DIM", None, ["positive integer"]),
    (
        "product ahead",
        "y = prod[i < l ≤ i+2](v[l])",
        "E-FUTURE",
        "v[l]",
        ["`v[l]` reads the future"],
    ),
    ("product wide", "y = prod[i-100000 < l ≤ i](v[l])", "E-LIMIT", None, ["expanded"]),
    (
        "product grows",
        "y = prod[i-3 < l ≤ i](l * v[l])",
        "E-LAG-POWER",
        None,
        ["grows with the position"],
    ),
    ("product index", "y = prod[i-3 < q ≤ i](v[q])", "E-NAME", "i-3 < q ≤ i", ["`q` is taken"]),
    ("window", "y = sum[i-3 < j ≤ i](v[j])", "E-UNSUPPORTED", "i-3 < j ≤ i", ["window"]),
]
SLOW = ("product wide",)  # as many factors are expanded as the limit allows


@pytest.mark.parametrize(
    ("rule", "items", "code", "place", "parts"),
    [
        pytest.param(*row, id=row[0], marks=[pytest.mark.full] * (row[0] in SLOW))
        for row in TYPING + WELL_FORMED
    ],
)
def test_a_broken_rule_is_named_at_its_place(
    rule: str, items: str, code: str, place: str | None, parts: list[str], problems: Problems
) -> None:
    found = problems(QKV.format(items))
    assert [d.code for d in found] == [code], rule
    assert place is None or found[0].span.text == place
    for part in parts:
        assert part in found[0].message


def test_axes_that_are_in_the_way_may_count_heads(problems: Problems) -> None:
    text = "mixer m {{\n dims d, {} h = 4, n = d / h, p = d / h\n input u : d\n{}\n}}"
    items = " param W : d -> h × n; V : d -> h × p\n a = W u ⊗ V u\n y = W u · a"
    outer, *_ = problems(text.format("", items))
    assert outer.code == "E-SHAPE-OUTER" and "if `h` counts heads" in outer.message
    assert problems(text.format("heads", items)) == ()
    items = " param a : h × n; b : h × n × p\n y = sum[d](u) * a · b"
    (dot,) = problems(text.format("", items))
    assert dot.code == "E-SHAPE-DOT" and "if `h` or `n` counts heads" in dot.message
    assert problems(text.format("heads", items)) == ()


def test_a_state_names_both_axes_of_one_size(problems: Problems) -> None:
    text = "dims d, n; input u : d; state S : n × n; S = S[i-1]; y = S · u"
    (twice,) = (d for d in problems(f"mixer m {{ {text} }}") if d.code == "E-AXIS-TWICE")
    assert twice.message.endswith("twice; give the second a name of its own: `dims n2 = n`")


def test_three_mistakes_are_three_diagnostics(problems: Problems) -> None:
    found = problems(QKV.format("a = q + v\nb = q ⊗ k\ny = a * b * wrong + sum[p](q)"))
    assert [d.code for d in found] == [
        "E-SHAPE-ADD",
        "E-SHAPE-OUTER",
        "E-UNKNOWN-NAME",
        "E-SHAPE-SUM",
    ]
    assert [d.span.line for d in found] == [2, 3, 4, 4]


PROMISED = {
    "positive": ("> 0", ["1", "iota[n] + 1", "~ uniform(0, 16)", "~ normal(1, 0.1)", "exp(-d)",
                         "~ legs_frequency[n](2 * n)", "~ legs_low_rank[n](n)"],
                 ["-1", "0", "iota[n]", "~ uniform(-2, -1)", "~ normal(0, 1)", "1/2 - d",
                  "~ legs_frequency[n](n)"]),
    "nonneg": ("≥ 0", ["0", "iota[n]", "~ log_uniform(0.001, 0.1)"], ["-1", "~ normal(0, 0.1)"]),
    "unit": ("between 0 and 1", ["1/2", "1 - 2^(-5 - iota[n])", "~ uniform(0, 1)", "1/n"],
             ["2", "1", "-1/2", "iota[n]", "~ normal(1/2, 1)", "~ exp(uniform(-1, 1))", "n"]),
    "nonzero": ("other than 0", ["-1", "iota[n] + 1"], ["0", "iota[n]"]),
    "": ("finite", ["log(n)", "-1", "~ normal(0, 0)"],
         ["log(-1)", "1/iota[n]", "sqrt(-d)", "~ log(uniform(-2, -1))", "(10^18)^60"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["param", "buffer"])
@pytest.mark.parametrize(
    ("flag", "init", "keeps"),
    [(f, i, k) for f, row in PROMISED.items() for k, its in ((True, row[1]), (False, row[2]))
     for i in its],
)  # fmt: skip
def test_initialisers_keep_what_a_declaration_promises(
    kind: str, flag: str, init: str, keeps: bool, problems: Problems
) -> None:
    written = init if init.startswith("~") else f"= {init}"
    found = problems(QKV.format(f"{kind} w : n {flag} {written}\ny = w * q"))
    assert [d.code for d in found] == ([] if keeps else ["E-INIT"])
    if not keeps:
        assert found[0].span.text == written
        assert PROMISED[flag][0] in found[0].message


def test_a_floor_of_0_is_a_buffers(problems: Problems) -> None:
    """A parameter is stored as its logit, and proofs read that it is above 0."""
    assert problems(QKV.format("buffer w : n unit = 0\ny = w * q")) == ()
    (found,) = problems(QKV.format("param w : n unit = 0\ny = w * q"))
    assert (found.code, found.span.text) == ("E-INIT", "= 0")


@pytest.mark.parametrize(
    "init", ["uniform(2, 1)", "normal(0, -1)", "log_uniform(-1, 1)", "log_uniform(0, 1)"]
)
def test_a_draw_needs_a_range(init: str, problems: Problems) -> None:
    (found,) = problems(QKV.format(f"param w : n ~ 2 * {init}\ny = w * q"))
    assert (found.code, found.span.text) == ("E-INIT", f"~ 2 * {init}")


def test_what_an_initialiser_gives_at_some_sizes_only_is_not_refused(problems: Problems) -> None:
    assert problems(QKV.format("param w : n unit = iota[n] / 5 + 1/10\ny = w * q")) == ()


def test_parameters_that_start_from_one_another_are_each_reported(problems: Problems) -> None:
    found = problems(QKV.format("param a : n = b + 1\n      b : n = 2 * a\ny = a * b * q"))
    assert [(d.code, d.span.text, d.span.line) for d in found] == [
        ("E-INIT", "b", 2),
        ("E-INIT", "a", 3),
    ]
    assert all(d.hint for d in found)


@pytest.mark.parametrize(
    "items",
    [
        "a = q + v\nb = a * 2\nc = sum[p](a) + b\ny = c * a",
        "param W : d × d\na = W u\ny = a + W a",
        "param w : m\ny = w * q + w[i-1]",
        "x = x[i-1] + q\nz = x · k\ny = z * x[i-2]",
        "state S : m\nS = S[i-1] + q\ny = S · q",
        "const P = qq\ny = taylor[P](q)\nz = P * y",
        "f(x) = x + wrong\ny = f(q) + f(k)",
    ],
)
def test_an_ill_typed_name_gives_no_second_report(items: str, problems: Problems) -> None:
    assert len(problems(QKV.format(items))) == 1


def test_what_only_follows_from_a_missing_base_is_not_said(problems: Problems) -> None:
    found = problems("mixer m extends qvk {\ninput w : d\ny = q + v\nz = w\nz = w\n}")
    assert [d.code for d in found] == ["E-BASE", "E-NAME"]
    assert found[0].nearest == "qkv"


def test_lstm_without_its_state_is_pointed_at_the_definition_that_recurs(
    problems: Problems,
) -> None:
    text = """mixer lstm {
      dims d
      input u : d
      param W_f, W_o, W_u, U_f, U_o : d -> d
      state c : d
      f = sigmoid(W_f u + U_f y[i-1])
      o = sigmoid(W_o u + U_o y[i-1])
      c = f * c[i-1] + tanh(W_u u)
      y = o * tanh(c)
    }"""
    (found,) = problems(text)
    assert found.code == "E-RECURSION"
    assert found.message == ("`y` reads its own past (y → o → y[i-1]); declare `state y : d`")


RESOLVED_BY_OTHERS = {
    *("E-NONLINEAR-STATE", "E-UNSUPPORTED", "E-CLAIM-FORM", "E-CLAIM", "E-CLAIM-OPEN"),
}


@pytest.mark.parametrize("code", [c for c in CODES if examples(c) is not None])
def test_the_examples_of_a_page_do_what_the_page_says(code: str, problems: Problems) -> None:
    wrong, right = examples(code) or ("", "")
    here = CODES[code].severity is Severity.ERROR and code not in RESOLVED_BY_OTHERS
    if here and CODES[code].stage is not Stage.PARSE:
        found = problems(wrong)
        assert {d.code for d in found} == {code}
    assert problems(right) == ()
