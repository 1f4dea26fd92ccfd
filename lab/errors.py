"""Errors of a lab, each with a message that names the thing and the remedy.

LabError
├── PrerequisiteMissingError   Java or Maven is not there, or too old
├── JarsUnavailableError       Maven could not fetch the broker's jars
├── PortTakenError             a port that was asked for is in use
├── LabExistsError             a lab of that name is running already
├── UnknownLabError            no lab of that name is running
├── UnknownBrokerError         the lab has no such broker
├── BrokerStateError           the broker is not in the state that the action needs
├── PartFailedError            a process died or did not come up; carries the end of its log
├── AdminCallError             a broker did not answer, or answered with an error
└── NotReachedError            the cluster did not reach the state that was waited for
"""


class LabError(Exception):
    """Anything that the lab reports to whoever uses it."""


class PrerequisiteMissingError(LabError):
    """A program that the lab needs is missing or too old."""


class JarsUnavailableError(LabError):
    """The jars of that Pulsar version could not be fetched."""


class PortTakenError(LabError):
    """A port that was asked for is in use."""


class LabExistsError(LabError):
    """A lab of that name is running already."""


class UnknownLabError(LabError):
    """No lab of that name is running."""


class UnknownBrokerError(LabError):
    """The lab has no broker of that id."""


class BrokerStateError(LabError):
    """The broker is not in the state that the action needs."""


class PartFailedError(LabError):
    """A process of the lab died or did not come up in time."""


class AdminCallError(LabError):
    """A broker did not answer an admin call, or answered with an error."""


class NotReachedError(LabError):
    """The cluster did not reach an awaited state in time."""
