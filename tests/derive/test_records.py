"""What a System keeps of the mixer, and on which side of a contraction factors stand."""

from __future__ import annotations

from dsfc.derive.derive import derive
from dsfc.mixer import resolve
from dsfc.source import Source
from dsfc.syntax.parse import parse


def system(body: str):
    text = f"mixer m {{\n dims d, heads h = 2, n = 3, p = 2\n input u : d\n{body}\n}}\n"
    return derive(resolve(parse(Source("<m>", text))))


def test_the_definition_is_what_the_output_depends_on() -> None:
    made = system(
        " param W : d -> n\n state s, t : n\n"
        " x = W u\n a = sigmoid(x)\n b = tanh(a)\n"
        " s = a * s[i-1] + x\n t = b * t[i-1] + x\n y = 2 * s"
    )
    assert [(d.name, d.update) for d in made.definition] == [
        ("x", False), ("a", False), ("y", False), ("s", True)
    ]  # fmt: skip


def test_a_decay_per_channel_stays_in_front_of_a_sum_and_one_per_head_goes_under_it() -> None:
    body = (
        " param W : d -> n; A : d -> {axis}\n state s : h × n × p\n"
        " k = W u\n a = sigmoid(A u)\n"
        " s = s[i-1] - k ⊗ sum[n](k * (a * s[i-1])) + u · ones[d] * ones[h, n, p]\n"
        " y = sum[n](s)"
    )
    sides = {}
    for axis in "hp":
        (block,) = system(body.format(axis=axis)).blocks
        (term,) = [t for f in block.chain for t in f.terms if t.over]
        sides[axis] = [{a.name for a in side.axes} for side in (term.left, term.right)]
    assert sides == {"h": [{"n"}, {"h", "n"}], "p": [{"n", "p"}, {"n"}]}
