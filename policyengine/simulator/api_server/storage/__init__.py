"""What is stored, in which order it changed, and the log of all writes."""
