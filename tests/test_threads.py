"""Compiling in many threads gives what compiling in one gives."""

from __future__ import annotations

import ast
import gc
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier
from typing import TypeVar

import pytest

import dsfc
from dsfc.emit.audit import parsed
from dsfc.expr.build import add, mul, num
from dsfc.expr.tree import Expr, Param

THREADS = 8
T = TypeVar("T")


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """Threads take turns as often as they can, whenever garbage is collected too."""

    def turn(*_: object) -> None:
        time.sleep(0)

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    gc.callbacks.append(turn)
    yield
    gc.callbacks.remove(turn)
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


def together(do: Callable[[int], T]) -> list[T]:
    """What each of several threads gives that start at one moment."""
    ready = Barrier(THREADS)

    def one(k: int) -> T:
        ready.wait()
        return do(k)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))


def test_texts_are_parsed() -> None:
    text = "\n".join(f"x{k} = {'(' * 20}{k}{' + 1)' * 20}" for k in range(30))
    want = ast.dump(ast.parse(text))
    assert set(together(lambda _: ast.dump(parsed(text)))) == {want}


@pytest.mark.ci
def test_equal_expressions_are_one_object_in_all_threads() -> None:
    def build(_: int) -> list[Expr]:
        names = [Param(f"threaded_{k}", frozenset()) for k in range(2000)]
        return [add(mul(num(k), a), b) for k, (a, b) in enumerate(pairwise(names))]

    first, *others = together(build)
    for other in others:
        assert all(a is b for a, b in zip(first, other, strict=True))


@pytest.mark.full
def test_modules_are_those_of_one_thread() -> None:
    names = ("retnet", "gla", "rg_lru", "deltanet")
    want = {name: dsfc.load(name).module().text for name in names}

    def compiled(k: int) -> dict[str, str]:
        turned = names[k % len(names) :] + names[: k % len(names)]
        return {name: dsfc.load(name).module().text for name in turned}

    assert all(found == want for found in together(compiled))
