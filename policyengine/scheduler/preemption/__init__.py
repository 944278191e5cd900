"""Making room for a pod that fits nowhere: PostFilter, evictions under way, nominated nodes.

The cycle and the gangs import it; it imports the binding room, `framework` and `plugins`.
"""
