"""Templates of the pods in which drivers and executors run on Kubernetes: rights that they do without.

Spark adds the rest to a container of the name given to it: image, command, resources, volumes of Secrets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

_DRIVER: Final = "spark-kubernetes-driver"
_EXECUTOR: Final = "spark-kubernetes-executor"


def driver_pod() -> str:
    """The driver's, which may ask Kubernetes for executors. JSON."""
    return _pod(_DRIVER, "optimizer", token=True)


def executor_pod() -> str:
    """An executor's, which has no business with Kubernetes itself. JSON."""
    return _pod(_EXECUTOR, "executor", token=False)


def settings_secret(name: str, settings: str) -> str:
    """The Secret that a driver's settings are in, to be given to ``kubectl apply``. JSON."""
    return _text(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "labels": _labels("optimizer")},
            "type": "Opaque",
            "stringData": {"settings.json": settings},
        }
    )


def _labels(component: str) -> Mapping[str, str]:
    return {"app.kubernetes.io/name": "icewright", "app.kubernetes.io/component": component}


def _pod(container: str, component: str, *, token: bool) -> str:
    return _text(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"labels": _labels(component)},
            "spec": {
                "automountServiceAccountToken": token,
                "enableServiceLinks": False,
                "restartPolicy": "Never",
                "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [
                    {
                        "name": container,
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }
                ],
            },
        }
    )


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True) + "\n"
