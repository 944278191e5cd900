"""Compiles a checked policy to a `Profile`: the only package that knows both `language` and `cluster`.

`compile` runs all phases; `columns` holds values and their kernels, `lower` makes closures of expressions, `rules`
makes plugins of closures, `conversion` translates kube-scheduler's configuration. `policy_compiler` and everything
above may import it. It imports `language`, `cluster`, `framework` and numpy, and has no clock, socket, thread or
randomness.
"""
