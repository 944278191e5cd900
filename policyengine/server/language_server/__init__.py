"""The language server: pygls on the outside; inside, a project of documents and what each place in them means.

`server` answers a method of LSP each; the other files answer it for one text. `commands.lsp` imports it. It imports
`language`, `compiler.front`, pygls and lsprotocol, and nothing else of `server`.
"""
