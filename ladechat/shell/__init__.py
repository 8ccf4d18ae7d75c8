"""The commands of the shell: chat, ask, learn, race, replay, and the way to those of other rooms."""
