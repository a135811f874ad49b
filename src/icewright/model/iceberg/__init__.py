"""Tables, files, manifests and names, as Iceberg's specification has them."""
