"""The SDP bound: the Peng-Wei relaxation with pairwise constraints and cuts, made safe."""

from certikmeans.bounds.sdp.bound import SdpBound, SdpWarmStart

__all__ = ["SdpBound", "SdpWarmStart"]
