"""Transportation problems: cheapest labels with limits on cluster sizes. Compiled."""
