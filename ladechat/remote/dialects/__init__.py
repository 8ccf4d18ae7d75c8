"""What each kind of server is asked, and how it tells its steps."""
