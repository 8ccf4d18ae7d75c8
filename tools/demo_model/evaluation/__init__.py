"""The examination of the bundled model: questions that the corpus does not have, and rules for the answers."""
