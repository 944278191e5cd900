"""What others call over HTTP: extender, webhook, metrics, web page."""
