"""Files and scripts that start the job on clusters; docs/launching.md explains them."""
