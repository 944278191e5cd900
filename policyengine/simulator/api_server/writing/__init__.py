"""Creating, updating and deleting objects, and what the server fills in."""
