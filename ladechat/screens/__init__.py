"""The screens, one per file; `view` is the part that the chat and its replay share."""
