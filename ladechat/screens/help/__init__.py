"""The help, the explanations of the panels, and the command palette."""
