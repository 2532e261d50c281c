"""Graph coloring with K colors, and obstructions: cliques, odd cycles."""
