"""Wrong inputs by kind: one change to a right spec each, with the first line of the answer."""

from __future__ import annotations

RIGHT = """\
mixer mine "normalised attention with a decay" {
  dims  d, heads h = 4, n = d / h, p = d / h
  input u : d
  param W_q, W_k : d -> h × n ~ normal(0, 0.02)
        W_v : d -> h × p ~ normal(0, 0.02)
        a   : h unit = 1/2
        w   : d -> h ~ normal(0, 0.02)
  state S : h × n × p
  q = W_q u
  k = W_k u
  v = W_v u
  g = sigmoid(w u)
  S = a * g * S[i-1] + k ⊗ v
  y = q · S
}
"""

TITLE = 'mine "normalised attention with a decay"'
CHANGES = {
    "lexical": (
        ("q = W_q u", "q = W_q u $", "E-CHAR: `$` cannot be used here"),
        ("1/2", "1/2x", "E-SYNTAX: a number cannot be applied; write `*` for a product"),
        (
            "normalised",
            "normalised\n",
            'E-SYNTAX: this string has no end on its line; close it with `"`',
        ),
        ('decay"', "decay", 'E-SYNTAX: this string has no end on its line; close it with `"`'),
        (
            "0.02",
            "0,02",
            "E-INIT: the initialiser of `W_q` must call `normal` with 2 numbers, not 3",
        ),
        (
            "q · S",
            "q ∙ S",
            "E-CHAR: `∙` (U+2219 BULLET OPERATOR) cannot be used here; write `·`",
        ),
        (
            "k ⊗ v",
            "k ⨂ v",
            "E-CHAR: `⨂` (U+2A02 N-ARY CIRCLED TIMES OPERATOR) cannot be used here; write `⊗`",
        ),
        (
            "a * g",
            "\u0430 * g",
            "E-CHAR: `\u0430` (U+0430 CYRILLIC SMALL LETTER A) cannot be used here; write `a`",
        ),
    ),
    "syntactic": (
        ("k ⊗ v", "k ⊗ v)", "E-SYNTAX: `)` closes nothing; remove it"),
        ("(w u)", "(w u", "E-SYNTAX: `(` is never closed"),
        ("q = W_q", "q := W_q", "E-SYNTAX: a definition is written with `=` alone"),
        ("q = W_q", "q == W_q", "E-SYNTAX: a definition has one `=`"),
        (
            "mixer mine",
            "def mine",
            "E-SYNTAX: a text consists of mixers and modifiers; write `mixer name { … }`",
        ),
        ("}\n", "", "E-SYNTAX: `}` is missing before this place"),
        ("a * g", "a ** g", "E-SYNTAX: a power is written `^`"),
        (
            "g = sig",
            "if u > 0: g = sig",
            "E-SYNTAX: a definition is `name = …`, without a word before it",
        ),
    ),
    "name": (
        ("k ⊗ v", "kk ⊗ v", "E-UNKNOWN-NAME: `kk` is not defined; did you mean `k`?"),
        (
            "sigmoid",
            "sigmod",
            "E-UNKNOWN-NAME: `sigmod` is not defined; did you mean `sigmoid`?",
        ),
        (
            "mixer mine",
            "mixer state",
            "E-KEYWORD: `state` is a word of the language and cannot be a name; "
            "rename it, for example to `state_`",
        ),
        (
            "q = W_q u",
            "q = W_q u;  q = W_q u",
            "E-NAME: `q` is already defined and cannot be defined again",
        ),
        (
            TITLE,
            "mine extends normalised_attn",
            "E-BASE: `normalised_attn`: there is no such mixer to extend; "
            "did you mean `normalized_attn`?",
        ),
        (
            "q = W_q u",
            "q = W_q u;  use tokenshift on q",
            "E-USE: no modifier `tokenshift`; did you mean `token_shift`?",
        ),
        (
            "~ normal",
            "~ gaussian",
            "E-UNKNOWN-NAME: `gaussian` is not defined; draws are `uniform`, `normal`, "
            "`log_uniform`, `orthogonal_chi`",
        ),
    ),
    "shape": (
        (
            "q · S",
            "q · v",
            "E-SHAPE-DOT: `·` contracts the one axis both sides share, but {h,n} and {h,p} share "
            "none; write `⊗`",
        ),
        (
            "k ⊗ v",
            "k * v",
            "E-SHAPE-MUL: `*` is elementwise, but `k` has {h,n} and `v` has {h,p}; "
            "for the outer product write `⊗`",
        ),
        (
            "k ⊗ v",
            "k + v",
            "E-SHAPE-ADD: cannot add axes {h,n,p} and {h,n}; broadcast with `⊗ ones[p]`",
        ),
        ("W_v u", "W_v q", "E-SHAPE-MAP: `W_v` takes {d}, but got {h,n}"),
        ("q · S", "sum[d](q)", "E-SHAPE-SUM: `q` has no axis `d`; its axes are {h,n}"),
        ("q · S", "q / S", "E-SHAPE-DIV: the divisor has {h,n,p}, which is not within {h,n}"),
        ("k ⊗ v", "k v", "E-JUXTA: `k` is not a map; for a product write `⊗`"),
        (
            "q · S",
            "q S",
            "E-JUXTA: `q` is not a map; for a product write `·`, which sums over `n`, or `*`, "
            "which does not",
        ),
    ),
    "field": (
        (
            "(0, 0.02)",
            "(0, -0.02)",
            "E-INIT: the initialiser of `W_q` draws from `normal`, whose deviation "
            "must not be negative",
        ),
        (
            "= 1/2",
            "= 2",
            "E-INIT: the initialiser of `a` gives 2, but its values must be between 0 and 1",
        ),
        (
            "unit = 1/2",
            "positive = -1",
            "E-INIT: the initialiser of `a` gives -1, but its values must be > 0",
        ),
        ("unit =", "complex unit =", "E-DECL: `a`: a complex value cannot be `unit`"),
        ("sigmoid(w u)", "log(0)", "E-CALL: `log` of 0 is not a number"),
        ("a * g", "a / 0", "E-CALL: `/` divides by zero"),
        ("a * g", "0^(-1)", "E-CALL: `^` divides by zero"),
        ("a * g", "a / (g - g)", "E-CALL: `/` divides by what is zero at every token"),
    ),
    "time": (
        (
            "W_k u",
            "W_k u[i+1]",
            "E-FUTURE: `u[i+1]` reads the future; the past is `u[i-1]`, and only a `backward` "
            "state or `sum[j > i]` may look ahead",
        ),
        ("S[i-1]", "S", "E-STATE-NOW: state `S` reads its own present value; write `S[i-1]`"),
        (
            "S[i-1]",
            "S[i-2]",
            "E-LAG: `S[i-2]` is more than one step back; add a register state that holds the step "
            "between",
        ),
        (
            "q = W_q u",
            "q = W_q r;  r = W_q q",
            "E-RECURSION: `q` reads its own value (q → r → q); a definition cannot depend on "
            "itself",
        ),
        (
            "S[i-1]",
            "S[t-1]",
            "E-INDEX: `S[t-1]`: the present token is `i`; did you mean `S[i-1]`?",
        ),
        (
            "S[i-1]",
            "tanh(S[i-1])",
            "E-NONLINEAR-STATE: `S` is not linear in its past: `tanh` is applied to it in "
            "`tanh(S[i-1])`; move the nonlinearity to the input or to the read-out",
        ),
    ),
    "size of an axis": (
        ("p = d / h", "p = p + 1", "E-DIM: the size of the axis `p` depends on itself (p → p)"),
        ("n = d / h", "n = d / 0", "E-DIM: the size of the axis `n` divides by zero"),
        (
            "h = 4",
            "h = 2.5",
            "E-DIM: the size of the axis `h` must be a positive integer, at most 1099511627776",
        ),
        (
            "h = 4",
            "h = -4",
            "E-DIM: the size of the axis `h` must be a positive integer, at most 1099511627776",
        ),
        (
            "n = d / h",
            "n = h d",
            "E-DIM: the size of the axis `n` is not arithmetic of numbers and sizes",
        ),
        ("d, heads", "heads", "E-AXIS: `n`: `d` is not an axis; axes are h, n, p"),
        ("n = d / h", "n = d^9^9", "E-DIM: the size of the axis `n` has powers beyond 64"),
    ),
    "size limit": (
        (
            "(w u)",
            "(" * 5_000 + "w u" + ")" * 5_000,
            "E-LIMIT: nested brackets: 65, at most 64 allowed",
        ),
        (
            "(w u)",
            "(" * 50_000 + "w u" + ")" * 50_000,
            "E-LIMIT: bytes of the file: more, at most 65536 allowed",
        ),
        (
            "a * g",
            "9^9^9 * g",
            "E-LIMIT: constant powers, multiplied: more than 64, at most 64 allowed",
        ),
        (
            "a * g",
            "(10^64)^64 * g",
            "E-LIMIT: bits of a number: more than 4096, at most 4096 allowed",
        ),
        ("h = 4", "h = 9^9^9", "E-DIM: the size of the axis `h` has powers beyond 64"),
        (
            "0.02",
            "1e999",
            "E-LIMIT: decimal exponent: 999, at most 64 allowed",
        ),
        (
            "W_q u",
            "W_q " + "v" * 20_000,
            "E-LIMIT: length of the name: 20000, at most 64 allowed",
        ),
        (
            "  q = W_q u",
            "".join(f"  f{k}(x) = f{k + 1}(x) * f{k + 1}(x)\n" for k in range(40))
            + "  f40(x) = x\n  q = f0(W_q u)",
            "E-LIMIT: nodes of expanded expressions: more than 50000, at most 50000 allowed",
        ),
        (
            TITLE,
            "mine extends m0 { y = u }\n"
            + "".join(f"mixer m{k} extends m{k + 1} {{ y = u }}\n" for k in range(1000))
            + "mixer m1000",
            "E-BASE: `m8`: more than 8 mixers extend one another",
        ),
    ),
    "encoding": (
        ("a decay", "a \x00decay", "E-CHAR: (U+0000) cannot be used here"),
        (
            "a decay",
            "a \u202edecay",
            "E-CHAR: (U+202E RIGHT-TO-LEFT OVERRIDE) cannot be used here",
        ),
        ("W_q u", "W_q\u200b u", "E-CHAR: (U+200B ZERO WIDTH SPACE) cannot be used here"),
        ("a decay", "a \udce9decay", "E-FILE: mine.dsf: not a text in UTF-8 (byte 40)"),
    ),
}  # fmt: skip
"""By kind: what stands in the right spec, what to write in its place, the first line to come."""

BYTES = (
    (RIGHT.encode("utf-16"), "E-FILE: mine.dsf: not a text in UTF-8 (byte 0)"),
    (bytes(range(128, 256)), "E-FILE: mine.dsf: not a text in UTF-8 (byte 0)"),
    (b"", "E-MIXER: the text defines no mixer; write `mixer name { … }`"),
    (b"# only words\n", "E-MIXER: the text defines no mixer; write `mixer name { … }`"),
)
"""Files that are no spec at all."""

CALLS = (
    (["other.dsf"], "E-FILE: other.dsf: no such file, and no shipped spec of that name"),
    (["."], "E-FILE: .: is a directory"),
    (
        ["gla.dsf"],
        "E-FILE: gla.dsf: no such file, and no shipped spec of that name; did you mean `gla`?",
    ),
    ([__file__], f"E-FILE: {__file__}: a Python file, and a spec is a .dsf file; `dsfc verify`"),
    (
        ["mine.txt"],
        "E-FILE: mine.txt: no such file, and no shipped spec of that name; "
        "did you mean `mine.dsf`?",
    ),
    (["mine.dsf", "-o", "no/such/out.py"], "E-FILE: no/such/out.py: there is no folder no/such"),
    (
        ["mine.dsf", "-o", "mine.dsf"],
        "E-OUTPUT: mine.dsf: it was not written by dsfc, or has been edited since; "
        "not overwritten, pass --force to replace it",
    ),
    (
        ["mine.dsf", "--mixer", "other"],
        "E-MIXER: the text defines no mixer `other`; it defines: mine",
    ),
    (
        ["mine.dsf", "--backend", "cuda"],
        "E-BACKEND: no backend `cuda`; there are: all, c, torch, triton",
    ),
)
"""What is asked of `dsfc compile` with the right spec, and the answer."""
