"""What `ladechat learn` teaches: scenes as data, the one that is under way, and where the reader has come to."""
