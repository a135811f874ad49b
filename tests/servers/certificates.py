"""Certificates for servers of tests: an authority of their own, which nobody trusts who was not told to."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LONG = dt.timedelta(days=365 * 60)
_SOME_DAY = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


@dataclass
class Authority:
    """Who vouches for servers; ``certificate`` is the file that trusts it."""

    folder: Path
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        self.certificate = self.folder / "authority.pem"
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of a test")])
        signed = self._signed(self.name, self.key, [(x509.BasicConstraints(ca=True, path_length=0), True)])
        self.certificate.write_bytes(signed)

    def vouch(self, certificate: Path, key: Path, *hosts: str) -> None:
        """Write a certificate for ``hosts`` and its key, in place of those that may be there."""
        own = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        certificate.write_bytes(self._signed(subject, own, [(names, False)]))
        key.touch(0o600)
        key.write_bytes(
            own.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extensions: list[tuple[Any, bool]]) -> bytes:
        identity = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_SOME_DAY)
            .not_valid_after(_SOME_DAY + _LONG)
        )
        for extension, is_critical in [*extensions, (identity, False), (issuer, False)]:
            builder = builder.add_extension(extension, critical=is_critical)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
