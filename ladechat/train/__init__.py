"""Training of what hidden transfer and Medusa add to a model. The model itself stays as it is."""
