"""Other people's tests of `generate`, each call of it made twice."""
