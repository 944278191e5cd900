"""No module of the package imports itself by way of others, type-checking imports included.

The contracts in pyproject.toml hold the floors and the rooms; this holds every single module. grimp, the graph behind
them, reads the imports from the source.
"""

import grimp


def cycles(imports: dict[str, set[str]]) -> list[list[str]]:
    """What is left once every module that imports nothing left, or that nothing left imports, is taken away."""
    left = dict(imports)
    while True:
        imported = set().union(*(left[name] & left.keys() for name in left)) if left else set()
        free = [name for name in left if name not in imported or not left[name] & left.keys()]
        if not free:
            return [sorted(left)] if left else []
        for name in free:
            del left[name]


def test_a_cycle_is_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph("policyengine", cache_dir=None)
    assert cycles({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}) == []
