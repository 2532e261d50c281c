"""Upper bounds: methods that return a proper labelling, the best they can find."""
