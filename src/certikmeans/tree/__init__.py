"""Branch and bound over domains of the solution set."""
