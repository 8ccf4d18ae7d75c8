"""One panel a file; each draws what the events say."""
