"""File systems and object stores."""
