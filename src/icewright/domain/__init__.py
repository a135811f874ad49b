"""The words of icewright as values: frozen dataclasses, enums and unions on the standard library alone."""
