"""The toolkit of the configuration: values, secrets, layers, and the settings of the server."""
