"""Functions on records that run on the workers of a cluster, dask's or Spark's. Secret.

`clusters` has the functions to call, and `replies` what workers reply. The modules of the engines are imported
when they are needed.
"""
