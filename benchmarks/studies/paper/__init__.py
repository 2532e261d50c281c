"""The paper's experiments next to its printed values."""
