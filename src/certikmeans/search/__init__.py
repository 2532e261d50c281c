"""Branch and bound: split the solution set until every part is proven."""
