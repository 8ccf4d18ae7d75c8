"""An engine without a model: it asks a server that has one, and says in the protocol what the server tells."""
