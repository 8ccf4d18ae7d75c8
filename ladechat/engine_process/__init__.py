"""What every engine process needs, whatever answers in it: its two streams, their watcher, the pace of its steps."""
