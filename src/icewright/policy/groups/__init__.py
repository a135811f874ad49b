"""Which resource group a table belongs to."""
