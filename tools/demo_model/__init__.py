"""How the bundled model is made: corpus, training and examination. `python -m tools.demo_model` says more."""
