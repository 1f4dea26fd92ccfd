"""A steady cluster's documents are put together once, and stay."""

from lab.simulator.steady import SteadyDocuments


def test_each_document_is_made_once_and_stays_what_it_was() -> None:
    documents = SteadyDocuments()
    made = [documents.get(broker, name, f"{broker} {name}".encode) for broker in ("a", "b") for name in ("stats", "")]
    again = [documents.get(broker, name, b"another".upper) for broker in ("a", "b") for name in ("stats", "")]
    assert made == [b"a stats", b"a ", b"b stats", b"b "]
    assert again == made
