"""What step events say of one pass and of one token, before it is drawn."""
