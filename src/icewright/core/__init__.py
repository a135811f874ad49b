"""What everything may use: errors, codec, clock, reasons, and how to write figures for people."""
