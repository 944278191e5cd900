"""Gets, lists and watches: what is selected, at which version, and how it is shown."""
