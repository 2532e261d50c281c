"""Where benchmark instances come from."""
