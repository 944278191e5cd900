"""Policies and clusters that the playground is tried with."""

POLICY = """policy "p" {
  scheduler "s"
  filter "roomy" { require node.free.cpu >= 2 else "has {node.free.cpu} cpu left" }
  score "first" weight 1 = 100 * ratio(node.free.cpu, node.allocatable.cpu)
  test "the free one" {
    given node "full" { allocatable: {cpu: 1, memory: 4Gi, pods: 9} }
    given node "free" { allocatable: {cpu: 4, memory: 4Gi, pods: 9} }
    given pod "web" { requests: {cpu: 500m} }
    expect "web" on "free"
  }
}
"""
SCENARIO = """nodes: [{name: node, count: 2, allocatable: {cpu: 4, memory: 8Gi}}]
pods: [{name: web, count: 6, requests: {cpu: 1}}]
"""
DUMP = """nodes:
  - metadata: {name: a}
    status: {allocatable: {cpu: "4", memory: 8Gi, pods: "9"}, conditions: [{type: Ready, status: "True"}]}
pods:
  - metadata: {name: there, namespace: x, uid: "1"}
    spec: {nodeName: a, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
  - metadata: {name: web, namespace: x, uid: "2"}
    spec: {schedulerName: s, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
"""
REGISTRY = "policyengine.commands.installed_plugins:installed_registry"
TOOLCHAIN = "policyengine.commands.lsp:toolchain"
