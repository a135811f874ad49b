"""Tasks and who carries them out."""
