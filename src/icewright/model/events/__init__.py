"""Events that come in, and events that go out."""
