"""kube-scheduler's extender protocol: a policy's own rules, asked by a stock kube-scheduler over HTTP.

`wire` holds the bodies, `rules` answers them, `verbs` and `app` carry them. `commands.extender` imports it. It imports
`kube`, `compiler.rules`, the evaluator of `framework`, and from `server` only `listening`.
"""
