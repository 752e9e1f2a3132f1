"""How likely nodes of a given size are to be released by an implicit plan."""

from __future__ import annotations

import numpy.typing as npt
import pandas as pd

from pandas_dptree.mechanisms.arguments import released_counts
from pandas_dptree.plans.implicit import ImplicitPlan
from pandas_dptree.signatures import public

__all__ = ["detection_probability"]


@public
def detection_probability(plan: ImplicitPlan, counts: npt.ArrayLike) -> pd.DataFrame:
    r"""Compute the probability that a node with a given number of records is released.

    With truncated Laplace noise of radius R and scale b, and with :math:`q = e^{-1/b}`, it is for
    :math:`1 \le w \le R` records

    .. math:: P(\text{noise} > R - w) = \frac{q^{R - w + 1}\,(1 - q^w)}{1 + q - 2q^{R+1}}.

    For :math:`R < w \le 2R + 1` it is one minus that for :math:`2R + 1 - w` records, so 1 at the end.

    With Gaussian noise and thresholds :math:`\tau`, a node is shown only below parents that are shown. The
    probability is that of a node whose ancestors on private levels hold no more than itself, the product of
    :math:`P(\text{noise} > \tau - w)` over these levels and its own. It is larger if they hold more.

    Parameters
    ----------
    plan : ImplicitPlan
    counts : array_like of int, shape (n,)
        Numbers of records, at least 0.

    Returns
    -------
    pandas.DataFrame
        Indexed by the counts, with one column per level. The nodes of public levels, and ancestors of
        released nodes, are always shown.

    Raises
    ------
    ArgumentError
        If the counts are not whole numbers of at least 0.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> tree = dpt.prefixes("ip", bits=[8, 16, 24, 32], notation="ipv4")
    >>> plan = dpt.plan(tree, epsilon=1.0, delta=1e-6, mechanism="truncated_laplace")
    >>> detection_probability(plan, [15, 20, 24])["ip/32"].round(3).tolist()
    [0.011, 0.336, 0.956]
    """
    sizes = released_counts(counts)
    columns = plan.noise.detection_probability(sizes)
    return pd.DataFrame(
        dict(zip(plan.level_names, columns, strict=True)), index=pd.Index(sizes, name="count")
    )
