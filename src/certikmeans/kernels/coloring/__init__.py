"""Whether a graph can be coloured with K colours, and small reasons why not."""
