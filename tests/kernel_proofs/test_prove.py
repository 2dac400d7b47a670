"""Kernels are proved at the sizes that their sums have, refuted by numbers, or not decided."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from proved_kernels import by_tokens, changed, in_chunks, of_backend, scan_of

import dsfc
from dsfc.emit.backend import load_backend
from dsfc.kernel_ir.interpret import interpret, value_of
from dsfc.kernel_ir.ir import Access, Along, Dot, Index, Let, Load, Loop, Map, Operation, plus
from dsfc.kernel_ir.numbers import DOUBLES
from dsfc.kernel_proofs.prove import Status, prove, recurrence_of
from dsfc.kernels.step import step
from dsfc.plan.ir import Role

CONSTANTS = frozenset(b.name for b in dsfc.load("s6").plan.arrays if b.role is Role.CONSTANT)

CHUNKS = ["retnet", "gla", "deltanet", "gated_deltanet", "kda", "rwkv7"]


@pytest.mark.parametrize("mixer", ["retnet", "gla", "deltanet"])
@pytest.mark.parametrize("chunk", [1, 2, 4])
def test_a_kernel_of_chunks_is_proved_for_all_lengths_and_sizes(mixer: str, chunk: int) -> None:
    verdict = prove(*in_chunks(mixer, chunk))
    assert (verdict.status, verdict.tokens, verdict.sizes) == (Status.PROVED, chunk, ())


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("mixer", CHUNKS)
def test_the_kernel_that_c_prints_is_proved(mixer: str) -> None:
    kernel, *_ = load_backend("c").kernels(dsfc.load(mixer).fused("c"))
    verdict = prove(kernel, scan_of(mixer))
    assert (verdict.status, verdict.sizes) == (Status.PROVED, ())
    assert verdict.text.startswith("for all lengths and all sizes, by induction over chunks of ")


def test_a_kernel_of_tokens_is_proved_for_all_lengths_and_sizes() -> None:
    verdict = prove(*by_tokens("rg_lru"))
    assert verdict.sentence == "proved for all lengths and all sizes, by induction over tokens"


def test_a_kernel_of_a_token_is_proved_for_one() -> None:
    scan = scan_of("gla")
    assert prove(step(scan, False), scan).text == "for one token and all sizes"


def test_a_step_that_multiplies_keys_with_a_sum_over_keys_is_proved_at_one_size() -> None:
    scan = scan_of("deltanet")
    verdict = prove(step(scan, False), scan)
    assert verdict.status is Status.PROVED
    assert verdict.sizes == (("SIZE_n", 2),)
    assert verdict.text == "for one token, at SIZE_n = 2 and all other sizes"


def test_keys_that_heads_share_are_proved() -> None:
    kernel, scan = in_chunks("retnet", 2, shared=True)
    assert prove(kernel, scan).status is Status.PROVED


@pytest.mark.parametrize(
    ("of", "beside"), [("retnet", "deltanet"), ("gla", "retnet"), ("deltanet", "gated_deltanet")]
)
def test_a_kernel_is_not_proved_to_be_of_another_scan(of: str, beside: str) -> None:
    kernel, _ = in_chunks(of, 2)
    assert prove(kernel, scan_of(beside)).status is not Status.PROVED


def test_a_decay_that_is_forgotten_is_refuted_by_numbers() -> None:
    kernel, scan = in_chunks("gla", 2)

    def without(e: Operation) -> Operation:
        return Map("add", e.operands * 2) if isinstance(e, Map) and e.function == "exp" else e

    verdict = prove(changed(kernel, without), scan)
    assert verdict.status is Status.REFUTED
    assert " instead of " in verdict.text
    assert "at L = " in verdict.text


def test_a_body_that_reads_the_first_state_in_every_iteration_is_refuted() -> None:
    kernel, scan = in_chunks("retnet", 2)
    (loop,) = (s for s in kernel.body if isinstance(s, Loop))
    (carry,) = loop.carries

    def stale(e: Operation) -> Operation:
        reads_it = isinstance(e, Dot) and e.right == carry.name
        return replace(e, right=carry.first) if isinstance(e, Dot) and reads_it else e

    assert prove(changed(kernel, stale), scan).status is Status.REFUTED


def test_a_kernel_that_runs_outside_of_its_arguments_is_refuted() -> None:
    kernel, scan = by_tokens("rg_lru")

    def further(e: Operation) -> Operation:
        if isinstance(e, Load) and e.argument == "v":
            row, token, *rest = e.at
            assert not isinstance(token, Along)
            return replace(e, at=(row, plus(token, 1), *rest))
        return e

    verdict = prove(changed(kernel, further), scan)
    assert verdict.status is Status.REFUTED
    assert "does not run" in verdict.text


def test_a_kernel_that_tells_keys_apart_is_proved_at_one_size() -> None:
    kernel, scan = in_chunks("retnet", 1)
    body = list(kernel.body)
    (n,) = (a for a in kernel.order if a.name == "n")
    # It is read by nothing, and the proof knows no more than that it is there.
    mutant = replace(kernel, body=(Let("numbers", Index(n)), *body))
    verdict = prove(mutant, scan)
    assert (verdict.status, verdict.sizes) == (Status.PROVED, (("N", 2),))


def test_a_kernel_that_lacks_a_result_is_not_decided() -> None:
    kernel, scan = in_chunks("retnet", 2)
    verdict = prove(kernel, replace(scan, decay=None))
    assert (verdict.status, verdict.tokens) == (Status.UNDECIDED, 0)
    assert "neither all of a pass forwards nor all of its gradient" in verdict.text


def test_a_maximum_for_a_sum_is_refuted() -> None:
    kernel, scan = by_tokens("rg_lru")

    def larger(e: Operation) -> Operation:
        return Map("max", e.operands) if isinstance(e, Map) and e.function == "add" else e

    assert prove(changed(kernel, larger), scan).status is Status.REFUTED


def test_what_cannot_be_told_from_the_recurrence_by_polynomials_is_not_decided() -> None:
    kernel, scan = by_tokens("rg_lru")

    (loop,) = (s for s in kernel.body if isinstance(s, Loop))
    (carry,) = loop.carries
    larger = Let("larger", Map("max", (carry.next, carry.next)))
    carries = (replace(carry, next="larger"),)
    mutant = replace(loop, body=(*loop.body, larger), carries=carries)
    body = tuple(mutant if s is loop else s for s in kernel.body)
    verdict = prove(replace(kernel, body=body), scan)
    assert (verdict.status, verdict.text) == (Status.UNDECIDED, "it compares values")


def test_a_complex_scan_is_not_decided() -> None:
    kernel, *_ = load_backend("c").kernels(dsfc.load("hgrn").fused("c"))
    verdict = prove(kernel, scan_of("hgrn"))
    assert verdict.status is Status.UNDECIDED
    assert "real states" in verdict.text


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("mixer", ["retnet", "gla", "deltanet", "rwkv7", "s6", "rg_lru"])
def test_what_is_proved_holds_of_numbers_at_other_sizes(mixer: str) -> None:
    kernel, scan = of_backend(mixer, 0)
    assert prove(kernel, scan, CONSTANTS).status is Status.PROVED
    recurrence = recurrence_of(kernel, scan, CONSTANTS)
    draw = np.random.default_rng(11)
    for length, size, part in ((1, 5, 3), (37, 3, 2), (70, 1, 4)):
        sizes = {n: size for n in (*kernel.static, *kernel.dynamic)}
        sizes |= {"L": length, "PT": part, "BLOCK": part}
        given = {
            a.name: draw.normal(size=[value_of(s, sizes) for s in a.shape]) / 4
            for a in kernel.arguments
            if a.access is Access.READ
        }
        given = {n: -np.abs(x) if n == "g" else x for n, x in given.items()}
        got, want = interpret(kernel, given, sizes), recurrence.run(given, length, DOUBLES)
        assert all(np.allclose(got[n], want[n], 1e-9, 1e-9) for n in want)
