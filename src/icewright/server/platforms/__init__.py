"""Where servers run, and is asked for more: a webhook's receiver, a command, Kubernetes."""
