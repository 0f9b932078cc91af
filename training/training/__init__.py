"""An instrumented TorchRec ranking job.

The run whose traces the toolkit explains, and the example to copy.
"""
