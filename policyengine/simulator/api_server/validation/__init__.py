"""What objects must be, and the refusals where they are not."""
