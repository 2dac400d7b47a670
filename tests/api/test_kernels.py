"""What is proved of the kernels of a mixer, as text and as JSON."""

from __future__ import annotations

import pytest

from dsfc.api.kernels import ASSUMED, KernelProofs, kernel_proofs
from dsfc.api.pipeline import read
from dsfc.kernel_proofs.prove import Status, Verdict


def proofs_of(mixer: str, backend: str = "c") -> KernelProofs:
    return kernel_proofs(read(mixer).compilation(), backend)


def test_every_kernel_of_a_mixer_has_a_verdict() -> None:
    proofs = proofs_of("rg_lru")
    assert [v.status for v in proofs.verdicts] == [
        Status.PROVED,
        Status.AT_LENGTHS,
        Status.PROVED,
    ]
    assert proofs.kept
    assert proofs.render() == (
        "rg_lru, kernels of the c backend\n"
        "  forward   proved for all lengths and all sizes, by induction over tokens\n"
        "  backward  proved at some lengths: L = 1, 2 and 3, with B = 1, CHANNELS = 2\n"
        "  steps     proved for all lengths and all sizes, by induction over tokens\n"
        f"\n{ASSUMED}"
    )


def test_kernels_of_several_scans_are_found_by_name() -> None:
    proofs = proofs_of("rwkv4")
    assert [v.kernel for v in proofs.verdicts] == [
        "forward_S",
        "backward_S",
        "steps_S",
        "forward_S_2",
        "backward_S_2",
        "steps_S_2",
    ]
    each = [Status.PROVED, Status.AT_LENGTHS, Status.PROVED]
    assert [v.status for v in proofs.verdicts] == 2 * each


def test_what_a_kernel_rests_on_is_said() -> None:
    for word in ("real arithmetic", "without rounding", "tested, not proved", "recurrence"):
        assert word in ASSUMED


def test_verdicts_are_json_values() -> None:
    verdict = Verdict("forward", Status.PROVED, "for all lengths", 16, (("N", 2),))
    assert KernelProofs("m", "c", (verdict,)).to_json() == {
        "mixer": "m",
        "backend": "c",
        "kernels": [
            {
                "name": "forward",
                "status": "proved",
                "text": "for all lengths",
                "tokens": 16,
                "sizes": {"N": 2},
            }
        ],
    }


def test_a_refuted_kernel_is_not_kept() -> None:
    verdict = Verdict("forward", Status.REFUTED, "o[0] is 1 instead of 2")
    proofs = KernelProofs("m", "c", (verdict,))
    assert not proofs.kept
    assert "forward  refuted: o[0] is 1 instead of 2\n" in proofs.render()


@pytest.mark.parametrize("backend", ["torch", "c"])
def test_a_mixer_without_kernels_has_no_verdicts(backend: str) -> None:
    proofs = proofs_of("softmax", backend)
    assert proofs.verdicts == () and proofs.kept
    assert f"the {backend} backend has no kernel of the kernel IR" in proofs.render()


@pytest.mark.ci
def test_a_pass_of_several_kernels_is_not_decided() -> None:
    proofs = proofs_of("gla", "triton")
    assert {v.status for v in proofs.verdicts} == {Status.UNDECIDED}
