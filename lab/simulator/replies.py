"""The shapes that a real broker's answers come in: JSON, a bare text, nothing, an error, Jetty's own page."""

import json

from starlette.requests import Request
from starlette.responses import Response

JSON_TYPE = "application/json"
DONE = 204


def document(value: object) -> Response:
    """A JSON document."""
    return Response(json.dumps(value, separators=(",", ":")), media_type=JSON_TYPE)


def bare(text: str) -> Response:
    """A word without quotes, which the broker calls JSON all the same (``ok``, ``4.0.7``, a bundle's range)."""
    return Response(text, media_type=JSON_TYPE)


def unset() -> Response:
    """Answer for an unset policy: 200, an empty body and no content type."""
    return Response(status_code=200)


def done() -> Response:
    """204."""
    return Response(status_code=DONE)


class Refusal(Exception):
    """An answer other than success, raised wherever a handler finds the reason.

    Attributes:
        status: The HTTP status.
        reason: The sentence in the body, ``{"reason": ...}``.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason

    def response(self) -> Response:
        """The refusal as the broker sends it."""
        body = json.dumps({"reason": self.reason}, separators=(",", ":"))
        return Response(body, status_code=self.status, media_type=JSON_TYPE)


class Elsewhere(Exception):
    """The request belongs to another broker: 307 to ``location``."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location

    def response(self) -> Response:
        """The redirect as the broker sends it, without a body."""
        return Response(status_code=307, headers={"Location": self.location})


def crashed(exception: str, message: str) -> Refusal:
    """A 500 with a Java stack trace in its reason, cut short."""
    head = "\n --- An unexpected error occurred in the server ---\n\n"
    trace = f"Stacktrace:\n\n{exception}: {message}\n\tat org.apache.pulsar.broker.admin(Simulated.java)"
    return Refusal(500, f"{head}Message: {message}\n\n{trace}")


def jetty_page(request: Request, status: int, message: str) -> Response:
    """The web server's own HTML page, for paths and methods that Pulsar does not know; PUT and DELETE get none."""
    if request.method in {"PUT", "DELETE"}:
        return Response(status_code=status)
    page = (
        f'<html>\n<head>\n<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>\n'
        f"<title>Error {status} {message}</title>\n</head>\n<body><h2>HTTP ERROR {status} {message}</h2>\n<table>\n"
        f"<tr><th>URI:</th><td>{request.url.path}</td></tr>\n<tr><th>STATUS:</th><td>{status}</td></tr>\n"
        f"<tr><th>MESSAGE:</th><td>{message}</td></tr>\n</table>\n\n</body>\n</html>\n"
    )
    return Response(page, status_code=status, headers={"Content-Type": "text/html;charset=iso-8859-1"})
