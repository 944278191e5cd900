"""A policy tried out in the browser: what it does in a cluster that is a text, while one types.

`work` answers questions in a process that can be killed, each from the texts that come with it: `evaluation` plays the
policy on what `tried_cluster` reads, `editing` asks the language server, `texts` writes what it begins with and what is
taken along. `page` serves it.
"""
