"""The sliders of the settings."""
