"""Small measurements of single steps, printed and not kept."""
