"""The plan as a networkx graph: what flows where, without a circle."""

from __future__ import annotations

import networkx as nx
import pytest
from shipped_specs import PLANNED
from unusual_specs import COMPILED, thirds

from dsfc.plan.flow_graph import to_networkx
from dsfc.plan.ir import Plan

KINDS = {"input", "state", "pointwise", "maximum", "reverse", "unit"}
KINDS |= {"attention", "pairs", "scan", "recurrence"}


def check(plan: Plan) -> None:
    graph = to_networkx(plan)
    assert nx.is_directed_acyclic_graph(graph)
    kinds = dict(graph.nodes(data="kind"))
    assert set(kinds.values()) <= KINDS
    assert sum(kind == "input" for kind in kinds.values()) == len(plan.inputs)
    assert sum(kind == "state" for kind in kinds.values()) == len(plan.states)
    assert len(graph) == len(plan.inputs) + len(plan.states) + len(plan.kernels)
    again = to_networkx(plan)
    assert list(graph) == list(again) and list(graph.edges) == list(again.edges)


@pytest.mark.parametrize("name", PLANNED)
def test_shipped_plans_are_acyclic(name: str, plan_of) -> None:
    check(plan_of(name))


@pytest.mark.share(5, ci=20)
@pytest.mark.parametrize("name", thirds((), pytest.mark.ci))
def test_unusual_plans_are_acyclic(name: str, load) -> None:
    check(load(name, COMPILED[name]).plan)


def test_edges_say_what_flows(load) -> None:
    plan = load("token_shift", COMPILED["token_shift"]).plan
    graph = plan.to_networkx()
    lags = {
        flow["lag"]
        for a, b, flow in graph.edges(data=True)
        if flow["buffer"] == "u" and b != "scan S"
    }
    assert lags == {0, 1}
    assert graph.nodes["scan S"]["axes"] == ("h", "n", "p")
    assert graph.get_edge_data("state S", "scan S") == {0: {"buffer": "S", "lag": 1}}


def test_two_reads_of_one_buffer_are_two_edges(load) -> None:
    plan = load("no_state_and_a_lag", COMPILED["no_state_and_a_lag"]).plan
    flows = plan.to_networkx().get_edge_data("u", "y")
    assert sorted(flow["lag"] for flow in flows.values()) == [0, 2]


def test_a_recurrence_reads_its_states_one_token_back(load) -> None:
    body = "dims d\n input u : d\n state s, t : d\n s = u * t[i-1] + u; t = u * s[i-1]\n y = s"
    graph = load("stepped", body).plan.to_networkx()
    (node,) = (n for n, kind in graph.nodes(data="kind") if kind == "recurrence")
    for name in "st":
        assert graph.get_edge_data(f"state {name}", node) == {0: {"buffer": name, "lag": 1}}
