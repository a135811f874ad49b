"""The toolkit of the command line: connection, output, lists."""
