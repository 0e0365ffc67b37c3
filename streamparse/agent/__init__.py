"""Act on calls: keep the conversation, and send it back so that a server takes it."""
