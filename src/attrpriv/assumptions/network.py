"""Networks as assumptions use them: over the columns of a record (`Counts`), or over parameters (`ParameterNetwork`).

The model and the bounds are in `numerics.networks`, because divergences are computed from them too.
"""

from attrpriv.numerics.networks.inference import bounds, bounds_given
from attrpriv.numerics.networks.network import Network, Node, read_network

__all__ = ["Network", "Node", "bounds", "bounds_given", "read_network"]
