"""What builds the documentation, the gallery and a release. Not part of the package."""
