"""The conversation: messages as lines, formatted, searched, in the colours of the steps."""
