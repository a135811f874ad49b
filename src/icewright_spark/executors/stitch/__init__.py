"""Copy row groups under a new footer, without decoding them."""
