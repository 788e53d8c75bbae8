"""The compiled part of the protocol. Only this module chooses between its compiled and interpreted form.

Import the modules from here (`from kaspar.protocol.core import wire`), never their contents by path.
"""

from typing import TYPE_CHECKING

from kaspar.base.compiled import load

if TYPE_CHECKING:
    from kaspar.protocol.core import fetch, produce, structs, wire
else:
    wire = load("kaspar.protocol.core.wire")
    structs = load("kaspar.protocol.core.structs")
    produce = load("kaspar.protocol.core.produce")
    fetch = load("kaspar.protocol.core.fetch")

__all__ = ["fetch", "produce", "structs", "wire"]
