"""What objects must be, and the refusals where they are not.

`writing` imports it; it imports field errors, the store, statuses and selectors.
"""
