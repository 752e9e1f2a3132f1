"""Functions on records that run on the workers of dask and Spark. Secret.

`clusters` has the functions to call, and `replies` what workers reply. The other modules are imported when a
frame of their engine is counted.
"""
