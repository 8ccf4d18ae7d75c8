"""The lessons of `ladechat learn`: scenes as data, the scene under way, and the reader's progress."""
