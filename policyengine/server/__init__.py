"""What others call over HTTP or a pipe: extender, webhook, pages, annotator, rewards, language server.

`commands` imports it. It imports `kube` and everything below it, and nothing of `simulator`.
"""
