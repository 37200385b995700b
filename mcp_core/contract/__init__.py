"""Contracts: what a server offers, as a file, and whether a later version breaks its users.

Nothing here opens a file, connects or waits.
"""

from __future__ import annotations

from ._compare import RULES as RULES
from ._compare import ContractChange as ContractChange
from ._compare import Verdict as Verdict
from ._compare import compare_contracts as compare_contracts
from ._compare import worst_verdict as worst_verdict
from ._contract import CONTRACT_FORM as CONTRACT_FORM
from ._contract import Contract as Contract
from ._contract import InvalidContract as InvalidContract
from ._contract import OlderContract as OlderContract
from ._contract import ServerOffers as ServerOffers
from ._contract import encode_contract as encode_contract
from ._contract import offers_of_lists as offers_of_lists
from ._contract import read_contract as read_contract

__all__ = [
    "CONTRACT_FORM",
    "RULES",
    "Contract",
    "ContractChange",
    "InvalidContract",
    "OlderContract",
    "ServerOffers",
    "Verdict",
    "compare_contracts",
    "encode_contract",
    "offers_of_lists",
    "read_contract",
    "worst_verdict",
]
