"""Kinds of constraints on labels, one module each, and the model that combines them."""
