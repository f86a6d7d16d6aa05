"""What a task's record keeps of its admission (T30, T34, T35), as values.

Rule 1: the transaction names its ingress and request by digest; it holds no words and no texts.
"""

from collections.abc import Mapping
from typing import ClassVar

from amux.core.value import Value

PREPARED, IDENTITY, OVERVIEW = "prepared", "identity-written", "overview-written"
CP_STATE, FENCED, FINALIZED = "cp-state-written", "owner-fenced", "finalized"
PHASES = (PREPARED, IDENTITY, OVERVIEW, CP_STATE, FENCED, FINALIZED)
NEEDS_RECONCILE = "needs-reconcile"


class Recovery(Value):
    """Proof that an admission which was interrupted was completed from exact read-back."""

    SCHEMA: ClassVar[str] = "TaskAdmissionReconciliationReceiptV1"
    DIGEST: ClassVar[str] = "receipt_digest"

    admission_id: str
    failed_from_phase: str | None
    observed_phase: str
    recovered_phase: str
    created_files: tuple[str, ...]
    effect_digests: Mapping[str, str]
    prior_transaction_digest: str
    mutation_authority: bool = False
    receipt_digest: str = ""


class Transaction(Value):
    """The resumable record that turns an ingress into a task, once."""

    SCHEMA: ClassVar[str] = "TaskAdmissionTransactionV1"
    DIGEST: ClassVar[str] = "transaction_digest"

    admission_id: str
    ingress_ref: str
    ingress_digest: str
    request_digest: str
    operation: str
    admission_generation: int
    phase: str
    failed_from_phase: str | None = None
    error_reason: str | None = None
    recovery: Recovery | None = None
    transaction_digest: str = ""

    @property
    def reached(self) -> str:
        """Name the last phase of T31 that was committed."""
        if self.phase == NEEDS_RECONCILE:
            return self.failed_from_phase or PREPARED
        return self.phase

    @property
    def is_finalized(self) -> bool:
        """Tell whether nothing of it is left to do."""
        return self.phase == FINALIZED


class AdmissionLease(Value):
    """One-shot permission to finish an admission in a second call."""

    SCHEMA: ClassVar[str] = "AdmissionContinuationLeaseV1"
    DIGEST: ClassVar[str] = "lease_digest"

    lease_id: str
    admission_id: str
    task_id: str
    project: str
    root_identity_digest: str
    session_digest: str
    context_epoch: str
    route_revision: int
    ingress_digest: str
    issued_at: str
    expires_at: str
    consumed_at: str | None = None
    lease_digest: str = ""
