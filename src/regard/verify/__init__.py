"""The equality certificate: for a run's model, or for tiny models of every family, what is claimed equal is measured.

An equality is a record with a name, a bound and a function that measures it. A room that has something to claim writes
them down as a tuple in a file here, and the tuple goes into the list below.
"""

from regard.verify.batching import BATCHING
from regard.verify.caching import CACHING
from regard.verify.certificate import Certificate, Equality, Result, certify, difference
from regard.verify.documents import DOCUMENTS
from regard.verify.faster import FASTER
from regard.verify.heads import HEADS
from regard.verify.learning import LEARNING
from regard.verify.looking import LOOKING
from regard.verify.searching import SEARCHING
from regard.verify.storing import STORING
from regard.verify.subject import Subject, built_in_subject, run_subject

EQUALITIES: tuple[Equality, ...] = (
    *HEADS, *CACHING, *BATCHING, *DOCUMENTS, *LOOKING, *SEARCHING, *FASTER, *STORING, *LEARNING,
)  # fmt: skip
"""All that is verified, in the order in which it is shown."""

__all__ = [
    "EQUALITIES", "Certificate", "Equality", "Result", "Subject", "built_in_subject", "certify", "difference",
    "run_subject",
]  # fmt: skip
