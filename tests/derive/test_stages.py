"""Strong components: what reaches each other stands together, behind what it reaches."""

from __future__ import annotations

from random import Random

from dsfc.derive.stages import strong_components


def reached(reads: dict[str, list[str]], start: str) -> set[str]:
    """The nodes that a node reaches in one step or more."""
    seen: set[str] = set()
    waiting = list(reads[start])
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += reads[node]
    return seen


def test_components_are_what_reaches_each_other_and_successors_come_first() -> None:
    random = Random(0)
    for _ in range(300):
        nodes = "abcdefgh"[: random.randint(1, 8)]
        edges = random.randint(0, 2 * len(nodes))
        reads: dict[str, list[str]] = {n: [] for n in nodes}
        for _ in range(edges):
            reads[random.choice(nodes)].append(random.choice(nodes))
        far = {n: reached(reads, n) for n in nodes}
        found = strong_components(reads)
        assert sorted(n for c in found for n in c) == list(nodes)
        place = {n: k for k, c in enumerate(found) for n in c}
        for a in nodes:
            assert all(place[b] <= place[a] for b in far[a])
            together = {b for b in nodes if b == a or (b in far[a] and a in far[b])}
            assert together == set(found[place[a]])


def test_a_long_chain_and_a_long_circle() -> None:
    names = [str(k) for k in range(3000)]
    chain = dict(zip(names, ([n] for n in names[1:]), strict=False)) | {names[-1]: []}
    assert strong_components(chain) == [[n] for n in reversed(names)]
    (circle,) = strong_components(chain | {names[-1]: [names[0]]})
    assert sorted(circle) == sorted(names)
