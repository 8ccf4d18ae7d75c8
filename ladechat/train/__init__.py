"""Training of the maps of hidden transfer and the heads of Medusa. The model itself is not changed."""
