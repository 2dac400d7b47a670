"""Systems that no text gives: each would prove something false under a name that is taken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.declarations import Constraint, Init, Tensor
from dsfc.expr.tree import (
    Abstract,
    Axis,
    Expr,
    Field,
    Iota,
    LinearMap,
    Num,
    Param,
    Prim,
    Ref,
    Size,
    argument_names,
)
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import Block, Post, Stream, System
from dsfc.trusted import comparable
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Invariant
from dsfc.trusted.closed import _declared, closed
from dsfc.trusted.rejected import Rejected

TEXT = """
mixer by_own_size { dims n, p
  input u : n
  input w : p
  y = n * u + 0 * (w · w)
}
mixer by_other_size { dims n, p
  input u : n
  input w : p
  y = p * u + 0 * (w · w)
}
mixer two_axes { dims n, p
  input u : n
  param w : n × p
  y = sum[p](w) * u
}
mixer two_terms { dims n
  abstract f : n -> n
  input u, v : n
  y = gelu(f(u) + f(v))
}
mixer one_term { dims n
  abstract f, g : n -> n
  input u, v : n
  y = gelu(g(v))
}
mixer mapped { dims n
  input u : n
  param w : n -> n complex
  y = Im(w u)
}
mixer nothing { dims n
  input u : n
  y = u - u
}
mixer decays { dims n
  input u : n
  param a : n complex
  state S : n complex
  S = a * S[i-1] + u
  y = Im(S)
}
mixer rooted { dims n
  input u : n
  param w : n complex
  y = Im(sqrt(w)) * u
}
mixer squares { dims n
  input u : n
  y = relu(u)
}
mixer normed { dims n
  input u : n
  state S : n
  S = S[i-1] + u
  y = l2norm[n](S)
}
mixer measured { dims n
  input u : n
  param w : n complex
  y = (abs(w) + 1) * u
}
mixer measured_at_once { dims n
  input u : n
  param w : n complex
  y = abs(w + 1) * u
}
mixer set_to { dims n
  input u : n
  param w, x : n
  buffer c : n = 2
  y = (c + w - x) * u
}
mixer set_to_again { dims n
  input u : n
  param w, x : n
  buffer c : n = 2
  y = (c + x - w) * u
}
mixer summed { dims n
  input u : n
  y = sum[j ≤ i](u[j])
}
mixer imaginary { dims n
  input u : n
  buffer c : n = 2
  y = Im(c * cplx(1, 0)) * u
}
"""

Change = Callable[[object], object]


def system(name: str) -> System:
    text = SpecText(Place(Path("forged.dsf")), parse(Source("forged.dsf", TEXT)))
    return text.compilation(name).system


def changed(value: object, change: Change) -> object:
    """The value with `change` applied to every part, inner parts first."""
    if isinstance(value, tuple):
        return tuple(changed(v, change) for v in value)
    if isinstance(value, frozenset):
        return frozenset(changed(v, change) for v in value)
    if isinstance(value, Expr):
        names = argument_names(type(value))
        return change(type(value)(*(changed(getattr(value, n), change) for n in names)))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        new = {f.name: changed(getattr(value, f.name), change)
               for f in dataclasses.fields(value) if f.init}  # fmt: skip
        return change(dataclasses.replace(value, **new))
    return change(value)


def claim(a: System, b: System, **sizes: int) -> Certificate:
    names = sorted({d.axis.name for s in (a, b) for d in s.axes})
    stated = Claim(a, b, (), tuple((n, sizes.get(n, 2)) for n in names))
    return Certificate(stated, Invariant((), False))


def a_size_of_another_axis() -> Certificate:
    """n u = p u, where the n of `Size` calls itself a copy of p."""

    def size(part: object) -> object:
        if isinstance(part, Size):
            return Size(dataclasses.replace(part.axis, copy_of="p"))
        return part

    forged = changed(system("by_own_size"), size)
    return claim(forged, system("by_other_size"), n=2, p=3)


def an_axis_of_another_place() -> Certificate:
    def size(part: object) -> object:
        return Size(Axis(7, part.axis.name)) if isinstance(part, Size) else part

    return claim(changed(system("by_own_size"), size), system("by_own_size"))


def axes_out_of_order() -> Certificate:
    def moved(part: object) -> object:
        if isinstance(part, Axis) and part.name == "p":
            return dataclasses.replace(part, index=-1)
        return part

    own = system("two_axes")
    return claim(changed(own, moved), own)


def a_name_that_spells_a_sum() -> Certificate:
    """gelu(f(u) + f(v)) = gelu(g(v)), where g is called "f(u)+f"."""
    own = system("two_terms")

    def call(part: object) -> object:
        if isinstance(part, Abstract) and part.name == "g":
            index = part.target[0]
            return Abstract("f<0>(u[0]@0)+f", (index,), (index,), part.arg)
        return part

    return claim(own, changed(system("one_term"), call), n=1)


def a_complex_map_that_is_real() -> Certificate:
    """Im(W u) = 0."""

    def real(part: object) -> object:
        if isinstance(part, LinearMap) and part.name == "w":
            return dataclasses.replace(part, field=Field.REAL)
        return part

    forged = system("mapped")
    streams, outputs, definition = (
        changed(getattr(forged, n), real) for n in ("streams", "outputs", "definition")
    )
    forged = dataclasses.replace(forged, streams=streams, outputs=outputs, definition=definition)
    return claim(forged, system("nothing"))


def a_complex_state_that_is_real() -> Certificate:
    """Im(S) = 0."""

    def real(part: object) -> object:
        return dataclasses.replace(part, field=Field.REAL) if isinstance(part, Block) else part

    return claim(changed(system("decays"), real), system("nothing"))


def a_complex_root_that_is_real() -> Certificate:
    """Im(√w) u = 0."""

    def real(part: object) -> object:
        if isinstance(part, Prim) and part.name == "sqrt":
            return Prim("sqrt", part.args, Field.REAL)
        return part

    return claim(changed(system("rooted"), real), system("nothing"))


def a_complex_parameter_read_as_real() -> Certificate:
    def real(part: object) -> object:
        if isinstance(part, Param) and part.name == "w":
            return Param(part.name, part.over, Field.REAL)
        if isinstance(part, Prim) and part.name == "sqrt":
            return Prim("sqrt", part.args, Field.REAL)
        return part

    return claim(changed(system("rooted"), real), system("nothing"))


def an_input_read_without_its_axis() -> Certificate:
    def scalar(part: object) -> object:
        if isinstance(part, Ref) and part.name == "u":
            return Ref(part.name, frozenset(), part.kind, part.when, part.at)
        return part

    return claim(changed(system("squares"), scalar), system("squares"))


def a_primitive_that_is_none() -> Certificate:
    def other(part: object) -> object:
        if isinstance(part, Prim) and part.name == "relu":
            return Prim("relu", (*part.args, *part.args), Field.REAL)
        return part

    return claim(changed(system("squares"), other), changed(system("squares"), other))


def a_norm_of_one_entry() -> Certificate:
    def other(part: object) -> object:
        if isinstance(part, Prim) and part.name == "relu":
            return Prim("l2norm", part.args, Field.REAL)
        return part

    return claim(changed(system("squares"), other), changed(system("squares"), other))


def a_function_of_reals_that_is_given_others() -> Certificate:
    """relu(w) of a complex w."""

    def other(part: object) -> object:
        return Prim("relu", part.args, Field.COMPLEX) if _is_root(part) else part

    return claim(changed(system("rooted"), other), changed(system("rooted"), other))


def a_function_of_reals_that_makes_others_real() -> Certificate:
    """relu(w) of a complex w, as if it were real."""

    def other(part: object) -> object:
        return Prim("relu", part.args, Field.REAL) if _is_root(part) else part

    return claim(changed(system("rooted"), other), changed(system("rooted"), other))


def _is_root(part: object) -> bool:
    return isinstance(part, Prim) and part.name == "sqrt"


def a_norm_without_its_axis() -> Certificate:
    def other(part: object) -> object:
        return dataclasses.replace(part, axis=None) if isinstance(part, Post) else part

    return claim(changed(system("normed"), other), changed(system("normed"), other))


def a_norm_of_no_name() -> Certificate:
    def other(part: object) -> object:
        return dataclasses.replace(part, name="certain") if isinstance(part, Post) else part

    return claim(changed(system("normed"), other), changed(system("normed"), other))


def a_complex_stream_that_is_real() -> Certificate:
    def real(part: object) -> object:
        return dataclasses.replace(part, field=Field.REAL) if isinstance(part, Stream) else part

    own = system("mapped")
    stream = Stream("z", next(iter(_maps(own))), own.outputs[0].axes, Field.COMPLEX)
    return claim(dataclasses.replace(own, streams=(real(stream),)), system("nothing"))


def _maps(own: System) -> list[Expr]:
    found: list[Expr] = []

    def keep(part: object) -> object:
        if isinstance(part, Expr) and part.field is Field.COMPLEX:
            found.append(part)
        return part

    changed(own.outputs, keep)
    return found


def complex_numbers_that_are_positive() -> Certificate:
    """|w| + 1 = |w + 1|, as |x| = x for positive x; at w = i it is not so."""

    def positive(part: object) -> object:
        if isinstance(part, Tensor) and part.name == "w":
            return dataclasses.replace(part, constraint=Constraint.POSITIVE)
        return part

    a, b = (changed(system(name), positive) for name in ("measured", "measured_at_once"))
    return claim(a, b)


def _set_to(value: Expr, name: str) -> System:
    own = system(name)
    (buffer,) = own.buffers
    buffer = dataclasses.replace(buffer, init=Init(value, drawn=False))
    return dataclasses.replace(own, buffers=(buffer,))


def a_buffer_that_is_a_parameter() -> Certificate:
    """The second's w is the first's x, so c = w is not one buffer."""
    axis = system("set_to").axes[0].axis
    value = Param("w", frozenset({axis}), Field.REAL)
    made = claim(_set_to(value, "set_to"), _set_to(value, "set_to_again"))
    return dataclasses.replace(
        made, claim=dataclasses.replace(made.claim, names=(("w", "x"), ("x", "w")))
    )


def a_real_buffer_of_a_complex_value() -> Certificate:
    """Im c = 0, where c = i."""
    value = Prim("cplx", (Num(Fraction(0)), Num(Fraction(1))), Field.COMPLEX)
    return claim(_set_to(value, "imaginary"), system("nothing"))


def a_buffer_of_another_axis() -> Certificate:
    axis = system("two_axes").axes[1].axis
    return claim(_set_to(Iota(axis), "imaginary"), system("nothing"))


FORGED = {
    a_size_of_another_axis: "the axis `n` is used and not declared so",
    an_axis_of_another_place: "the axis `n` is used and not declared so",
    axes_out_of_order: "the axes are not in the order of their positions",
    a_name_that_spells_a_sum: "the map `f<0>(u[0]@0)+f` is used and not declared so",
    a_complex_map_that_is_real: "the map `w` is used and not declared so",
    a_complex_state_that_is_real: "declared real and takes complex values",
    a_complex_root_that_is_real: "`sqrt` has not the field that it gives",
    a_complex_parameter_read_as_real: "`w` is used otherwise than declared",
    an_input_read_without_its_axis: "`u` is used otherwise than declared",
    a_primitive_that_is_none: "`relu` is used as what it is not",
    a_norm_of_one_entry: "`l2norm` is used as what it is not",
    a_function_of_reals_that_is_given_others: "`relu` has not the field that it gives",
    a_function_of_reals_that_makes_others_real: "`relu` has not the field that it gives",
    a_norm_without_its_axis: "`l2norm` is used as what it is not",
    a_norm_of_no_name: "certain",
    a_complex_stream_that_is_real: "`z` is declared real and is not",
    complex_numbers_that_are_positive: "`w` is complex, and cannot be positive",
    a_buffer_that_is_a_parameter: "the value of `c` is not made of numbers",
    a_real_buffer_of_a_complex_value: "the value of `c` is another array than declared",
    a_buffer_of_another_axis: "the value of `c` is another array than declared",
}


@pytest.mark.parametrize("make", FORGED, ids=lambda make: make.__name__)
def test_a_forged_system_is_rejected(make: Callable[[], Certificate]) -> None:
    with pytest.raises(Rejected) as caught:
        check(write(make()))
    assert FORGED[make] in str(caught.value)


FALSE = [
    a_size_of_another_axis,
    a_name_that_spells_a_sum,
    a_complex_map_that_is_real,
    a_buffer_that_is_a_parameter,
    a_real_buffer_of_a_complex_value,
]


@pytest.mark.parametrize("make", FALSE, ids=lambda make: make.__name__)
def test_what_is_refused_would_have_been_accepted(
    make: Callable[[], Certificate], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The claims are false: nothing else in the kernel sees it.
    monkeypatch.setattr(comparable, "closed", lambda system: None)
    assert check(write(make())).claim.equal


def test_a_state_that_no_definition_makes_is_declared_by_its_block() -> None:
    made = system("summed")
    (block,) = made.blocks
    assert all(d.name != block.state for d in made.definition)
    assert _declared(made)[block.state] == {(frozenset(block.axes), block.field)}


@pytest.mark.parametrize("kind", ["inputs", "params", "buffers"])
def test_what_is_complex_has_no_sign(kind: str) -> None:
    made = system("nothing")
    t = Tensor("c", (), Field.COMPLEX)
    closed(dataclasses.replace(made, **{kind: (*getattr(made, kind), t)}))
    signed = dataclasses.replace(t, constraint=Constraint.POSITIVE)
    with pytest.raises(ValueError, match="`c` is complex, and cannot be positive"):
        closed(dataclasses.replace(made, **{kind: (*getattr(made, kind), signed)}))


def test_a_buffer_may_have_no_value() -> None:
    closed(dataclasses.replace(system("nothing"), buffers=(Tensor("c", ()),)))
