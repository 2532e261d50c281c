"""Cheapest proper labels of a dense core: prices, branching, and labels without proof."""
