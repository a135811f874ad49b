"""The catalog port over PyIceberg."""
