"""The SDP bound: the Peng-Wei relaxation with pairwise constraints and cuts, made safe."""

from certikmeans.bounds.sdp.bound import SdpBound, SdpRestart

__all__ = ["SdpBound", "SdpRestart"]
