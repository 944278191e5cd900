"""What objects must be, and the refusals where they are not.

`writing` imports it; it imports the store, statuses and selectors.
"""
