"""Kernels of pricing: branch and bound over boxes of the centre, and local ascents."""
