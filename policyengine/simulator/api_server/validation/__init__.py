"""What objects must be, and the refusals where they are not.

`writing` imports it; it imports the tables of `kinds`, field errors, the store and statuses.
"""
