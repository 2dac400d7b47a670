"""Sums over the past and the future with the axes h × p, one of each kind that separates or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from token_values import NO_AXES, Axes, Scope, Text, over, shape


@dataclass(frozen=True)
class Trio:
    """Names of a query and a key over h × n, and of a value over h × p, in a scope."""

    scope: Scope
    q: str
    k: str
    v: str

    def named(self, axes: str) -> str:
        """Returns the name of a stream."""
        given = over(axes)
        inner = self.scope.value(given, 1)
        return self.scope.define(Text(f"sin(u · ones[d] / 3) * ({inner.text})"), given).text

    def run(self) -> str:
        """Returns the name of a decay in time."""
        axes = over(self.scope.random.choice(("h", "hn")))
        return self.scope.define(Text(f"sigmoid({self.moving(axes)})"), axes, "a").text

    def moving(self, axes: Axes) -> str:
        """Returns a linear map of something that depends on the token."""
        inner = self.scope.projection(axes).text
        if self.scope.moves(inner):
            return inner
        return f"{self.scope.param(f'd -> {shape(axes)}', 'W')}(u) * {inner}"

    def complex(self, axes: str) -> str:
        """Returns the name of a complex stream."""
        a, b = (self.moving(over(axes)) for _ in range(2))
        return self.scope.define(Text(f"cplx({a}, {b})"), NO_AXES | {"complex"}, "z").text

    def param(self, kind: str, flags: str = "") -> str:
        return self.scope.param(kind, "c", flags)

    def number(self) -> str:
        return self.scope.random.choice(("1/2", "1/3", "2/3", "1/4", "3/4", "1/5"))

    def choice(self, *texts: str) -> str:
        return self.scope.random.choice(texts)


def random_sum(given: Trio) -> Text:
    """Returns a sum over time with the axes h × p."""
    return Text(given.scope.random.choice(SUMS)(given), 0)


def _plain(w: Trio) -> str:
    return f"sum[j {w.choice('≤', '<=')} i]({w.q} · {w.k}[j] * {w.v}[j])"


def _scaled(w: Trio) -> str:
    return f"sum[j ≤ i]({w.q} · {w.k}[j] * {w.v}[j]) / (1 + exp({w.named('h')}))"


def _strict(w: Trio) -> str:
    c = w.param("h", " unit")
    return f"sum[j < i]({c}^(i-j-1) * {w.q} · {w.k}[j] * {w.v}[j])"


def _lag_power(w: Trio) -> str:
    c = w.param(w.choice("h", "h × n", "n"), " unit")
    return f"sum[j ≤ i](sum[n]({w.q} * {w.k}[j] * {c}^(i-j)) * {w.v}[j])"


def _lag_function(w: Trio) -> str:
    f, a, b = w.scope.fresh("K"), w.scope.fresh("l"), w.param("h × n", " unit")
    c = w.param("h × n", " complex")
    w.scope.functions.append(f"{f}({a}) = Re(sum[n]({c} * ({b} * cis({b}))^{a}))")
    return f"sum[j ≤ i]({f}(i-j) * {w.v}[j])"


def _exponential_lag(w: Trio) -> str:
    c = w.param("h × p", " positive")
    return f"sum[j ≤ i](exp(-(i-j) * {c}) * {w.v}[j])"


def _gated(w: Trio) -> str:
    g = w.named("h")
    return f"sum[j ≤ i](exp({g} - {g}[j] - 1/3 * (i-j)) * {w.q} · {w.k}[j] * {w.v}[j])"


def _product(w: Trio) -> str:
    a = w.run()
    return f"sum[j ≤ i](sum[n](prod[j < l ≤ i]({a}[l]) * {w.q} * {w.k}[j]) * {w.v}[j])"


def _product_before(w: Trio) -> str:
    a = w.run()
    inner = f"prod[j < {w.choice('l < i', 'l ≤ i')}]({a}[l]) * {w.q} * {w.k}[j]"
    return f"sum[j < i](sum[n]({inner}) * {w.v}[j])"


def _future(w: Trio) -> str:
    relation = w.choice(">", "≥", ">=")
    return f"sum[j {relation} i]({w.number()}^(j-i) * {w.q} · {w.k}[j] * {w.v}[j])"


def _product_ahead(w: Trio) -> str:
    a = w.run()
    inner = f"prod[i < l ≤ j]({a}[l]) * {w.q} * {w.k}[j]"
    return f"sum[j ≥ i](sum[n]({inner}) * {w.v}[j])"


def _taylor(w: Trio) -> str:
    order = w.choice("1", "2", "2", "3")
    return f"sum[j ≤ i](taylor[{order}](n^(-1/2) * {w.q} · {w.k}[j]) * {w.v}[j])"


def _square(w: Trio) -> str:
    return f"sum[j ≤ i](({w.number()} + {w.q} · {w.k}[j])^2 * {w.v}[j])"


def _normalised(w: Trio) -> str:
    score = f"exp({w.q}) · exp({w.k}[j])"
    return f"sum[j ≤ i]({score} * {w.v}[j]) / sum[j ≤ i]({score})"


def _scored(w: Trio) -> str:
    f, a, b = w.scope.fresh("score"), w.scope.fresh("a"), w.scope.fresh("b")
    w.scope.functions.append(f"{f}({a}, {b}) = exp(n^(-1/2) * {a} · {b})")
    score = f"{f}({w.q}, {w.k}[j])"
    return f"sum[j ≤ i]({score} * {w.v}[j]) / sum[j ≤ i]({score})"


def _rotary(w: Trio) -> str:
    q, k, c = w.complex("hn"), w.complex("hn"), w.param("n")
    return f"sum[j ≤ i](Re(sum[n]({q} * conj({k}[j]) * cis({c})^(i-j))) * {w.v}[j])"


def _parts(w: Trio) -> str:
    a, b = w.param("h"), w.param("h × p")
    first, second = w.scope.random.choice((("Re", "Im"), ("Re", "Re"), ("Im", "Im")))
    kernel = f"{first}(cis({a} * (i-j))) * {second}(cis({b} * (i-j) + 1))"
    return f"sum[j ≤ i]({kernel} * {w.v}[j])"


def _nested(w: Trio) -> str:
    inner = f"sum[l ≤ j]({w.number()}^(j-l) * {w.k}[j] · {w.k}[l] * {w.v}[l])"
    return f"sum[j ≤ i]({w.q} · {w.k}[j] * {inner})"


def _over_a_sum(w: Trio) -> str:
    inner = Text(w.scope.random.choice((_plain, _strict, _normalised))(w))
    first = w.scope.define(inner, over("hp"), "o").text
    return f"sum[j < i]({w.q} · {w.k}[j] * {first}[j])"


def _keyless(w: Trio) -> str:
    return f"sum[j ≤ i]({w.scope.bounded(over('h')).text} * {w.v}[j]) / sum[j ≤ i](1)"


def _lagged_range(w: Trio) -> str:
    return f"sum[j ≤ i-{w.choice('1', '2')}]({w.number()}^(i-j) * {w.q} · {w.k}[j] * {w.v}[j])"


def _features(w: Trio) -> str:
    phi = w.choice("elu({}) + 1", "softplus({})", "relu({})")
    return f"sum[j ≤ i](({phi.format(w.q)}) · ({phi.format(f'{w.k}[j]')}) * {w.v}[j])"


def _copied(w: Trio) -> str:
    pairs = [f"{x} ⊗ rename[n, m]({x})" for x in (w.q, w.k)]
    q, k = (w.scope.define(Text(x), over("hnm"), "qq").text for x in pairs)
    return f"sum[j ≤ i](sum[n](sum[m]({q} * {k}[j])) * {w.v}[j])"


def _cache(w: Trio) -> str:
    kernel = w.choice(
        f"exp({w.q} · {w.k}[j])",
        f"sigmoid({w.q} · {w.k}[j])",
        f"sigmoid({w.scope.bounded(over('h')).text})^(i-j)",
    )
    return f"sum[j ≤ i]({kernel} * {w.v}[j])"


SUMS: tuple[Callable[[Trio], str], ...] = (
    _plain, _scaled, _strict, _lag_power, _lag_function, _exponential_lag, _gated, _product,
    _product_before, _future, _product_ahead, _taylor, _square, _normalised, _scored, _rotary,
    _parts, _nested, _over_a_sum, _keyless, _lagged_range, _features, _copied, _cache,
)  # fmt: skip
