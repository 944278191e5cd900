from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.language.diagnostics import Source
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_files
from tests.builders import make_node, make_pod
from tests.docs.even_nodes import EVEN_NODES, shown


def test_the_page_s_plugin_judges_as_the_page_says() -> None:
    policy = 'policy "even" { use EvenNodes weight 2 { allowed: [0, 2, 4] } }'
    result = compile_files([Source("p", policy)], None, {**IN_TREE, "EvenNodes": EVEN_NODES})
    assert not result.diagnostics
    view = ClusterView()
    for number in range(5):
        view.add_or_update_node(make_node(f"node-{number}").capacity(cpu="4", memory="8Gi", pods=110).build())
    snapshot = view.snapshot()
    evaluated = Evaluator(result.profiles[0]).filter(make_pod().info(), snapshot)
    names = [snapshot.nodes.names[row] for row in evaluated.feasible]
    assert sorted(names) == ["node-0", "node-2", "node-4"]


def test_the_page_s_entry_point_names_the_plugin() -> None:
    assert "EvenNodes = " in shown("toml") and EVEN_NODES.name == "EvenNodes"
