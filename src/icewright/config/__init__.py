"""TOML, environment and PyIceberg's own configuration, read once into one frozen value."""
