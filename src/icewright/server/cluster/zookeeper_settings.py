"""Where ZooKeeper is, as whom a server comes, and which identities of ZooKeeper are that of the servers."""

from __future__ import annotations

from dataclasses import dataclass

from kazoo.security import Id, make_digest_acl_credential

from icewright.core.servers import ZOOKEEPER_ROOT


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """Where ZooKeeper is, and as whom a server comes; ``ca`` is the file of authorities where it is reached by TLS."""

    hosts: tuple[str, ...]
    root: str = ZOOKEEPER_ROOT
    session_s: float = 10.0
    user: str | None = None
    password: str = ""
    by_sasl: bool = False
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        """Without the password."""
        return f"ZooKeeperSettings(hosts={self.hosts!r}, root={self.root!r}, user={self.user!r})"

    @property
    def is_known(self) -> bool:
        """Whether ZooKeeper knows who a server is, so that nobody else may have its nodes."""
        return self.user is not None or self.certificate is not None

    def is_own(self, identity: Id) -> bool:
        """Whether it is that of the servers; ZooKeeper shows no digest to whom it does not let change who may what."""
        if identity.scheme == "x509":
            return self.certificate is not None
        if self.user is None or identity.scheme != ("sasl" if self.by_sasl else "digest"):
            return False
        credential = make_digest_acl_credential(self.user, self.password)
        return identity.id in ((self.user,) if self.by_sasl else (credential, f"{self.user}:x"))
