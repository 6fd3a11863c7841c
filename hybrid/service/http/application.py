"""The HTTP side: routes to what the service can do. Nothing here computes; everything long happens elsewhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from hybrid import __version__
from hybrid.service.events import EventStream, Published
from hybrid.service.http import models
from hybrid.service.http.access import TRUSTED, Gate, answer_with
from hybrid.service.http.forms import Result
from hybrid.service.http.models import GraphId, GraphRequest, JobRequest, VertexId
from hybrid.service.http.problems import MEDIA_TYPE, TITLES, Problem, problem_of
from hybrid.service.queue import searches
from hybrid.service.queue.jobs import OVER, Job
from hybrid.service.service import Service

_log = logging.getLogger(__name__)
PAGE = Path(__file__).parent.parent / "page"
_PARTS = frozenset(path.name for path in PAGE.iterdir() if path.suffix in (".css", ".js"))
_KINDS = {".html": "html", ".css": "css", ".js": "javascript"}
_PIECE_BYTES = 1 << 20
_BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_TEXT = {"schema": {"type": "string"}}
Route = Callable[..., Callable[[Any], Any]]  # add_route for one group
Wait = Annotated[float, Query(ge=0, le=60.0, description="answer when it is over, or after so long")]
Deadline = Annotated[float | None, Query(gt=0, le=3600, description="give up after so long")]
Offset = Annotated[int, Query(ge=0, le=2**62)]
Limit = Annotated[int, Query(ge=1, le=1_000_000)]
Run = Annotated[int, Query(ge=0, le=1_000_000, description="of a job with several sources, which one")]


def add_route(
    app: FastAPI, tag: str, method: str, path: str, summary: str, answer: Any = None, *problems: int, **further: Any
) -> Callable[[Any], Any]:
    """Add a route of one group; the document says what it answers, problems included.

    ``content``: what a route without a model of its answer sends, by media type.
    """
    if "content" in further:
        said = {"description": further.pop("description"), "content": further.pop("content")}
        further |= {"response_class": Response, "responses": {200: said}}
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    every = sorted({400, 401, 403, 405, 422, *problems})
    refusals = {status: {"description": TITLES[status], "content": content} for status in every}
    further["responses"] = refusals | further.get("responses", {})
    return app.api_route(path, methods=[method], response_model=answer, tags=[tag], summary=summary, **further)


def make_app(service: Service, token: str | None) -> Any:
    """The application around a service, with the gate around it."""
    app = FastAPI(
        title="Tandem", version=__version__, docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json",
        summary="Graphs in memory, exact answers over HTTP.", responses={},
    )  # fmt: skip
    _add_problems(app)
    _add_state(partial(add_route, app, "state"), service)
    _add_graphs(partial(add_route, app, "graphs"), service)
    _add_new_graphs(partial(add_route, app, "graphs"), service)
    _add_jobs(partial(add_route, app, "jobs"), service)
    _add_results(partial(add_route, app, "jobs"), service)
    _add_queries(partial(add_route, app, "queries"), service)
    _add_events(partial(add_route, app, "events"), service)
    _add_pages(app)
    _complete_document(app, secured=token is not None)
    return Gate(app, service.settings, token, service.metrics)


def _add_problems(app: FastAPI) -> None:
    @app.exception_handler(Problem)
    @app.exception_handler(OSError)
    @app.exception_handler(Exception)
    async def admit(request: Request, error: Exception) -> Response:
        if isinstance(error, OSError):  # of others the server writes the traceback to the log
            _log.error("%s %s: %s", request.method, request.url.path, error)
        return answer_with(problem_of(error))

    @app.exception_handler(RequestValidationError)
    async def explain(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
        return answer_with(Problem(422, f"{place or 'request'}: {first['msg']}", "/docs tells what is expected"))

    @app.exception_handler(HTTPException)
    async def translate(request: Request, error: HTTPException) -> Response:
        answer = answer_with(Problem(error.status_code, str(error.detail), "/docs lists what there is"))
        answer.headers.update(error.headers or {})
        return answer


def _complete_document(app: FastAPI, *, secured: bool) -> None:
    """OpenAPI as it is: with the token."""
    make: Callable[[], dict[str, Any]] = app.openapi

    def complete() -> dict[str, Any]:
        document = make()
        if secured:
            document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}]
        return document

    app.openapi = complete  # type: ignore[method-assign]


def _add_state(route: Route, service: Service) -> None:
    @route("GET", "/healthz", "The process answers", models.Health)
    async def healthz() -> Any:
        return {"status": "ok"}

    not_yet = {503: {"model": models.Readiness, "description": "not yet"}}

    @route("GET", "/readyz", "Every graph can be asked", models.Readiness, responses=not_yet)
    async def readyz(request: Request, response: Response) -> Any:
        ready, reasons = service.readiness()
        response.status_code = 200 if ready else 503
        told: dict[str, Any] = {"ready": ready, "worker": service.workers.state}
        if not request.scope.get(TRUSTED):  # without the token: whether, and nothing of whose or what
            reasons = [] if ready else ["graphs are being opened, or the service is shutting down"]
            return {**told, "reasons": reasons, "workers": [], "graphs": {}}
        graphs = {entry.id: entry.state for entry in service.catalogue.all()}
        ranks = None if service.rank_pool is None else service.rank_pool.state.to_dict()
        return {**told, "reasons": reasons, "workers": service.workers.tell(), "graphs": graphs, "ranks": ranks}

    @route("GET", "/metrics", "Prometheus", response_class=PlainTextResponse)
    async def metrics() -> Any:
        return PlainTextResponse(service.metrics.render(service.gauges()), media_type="text/plain; version=0.0.4")


def _add_graphs(route: Route, service: Service) -> None:
    @route("GET", "/v1/graphs", "Graphs in memory", models.GraphList)
    async def list_graphs() -> Any:
        return {"graphs": [entry.to_dict() for entry in service.catalogue.all()]}

    @route("GET", "/v1/files", "Files below the data roots", models.FileList)
    async def list_files() -> Any:
        return {"files": await asyncio.to_thread(service.roots.listing)}

    @route("GET", "/v1/graphs/{graph}", "One graph", models.GraphDetails, 404)
    async def get_graph(graph: str, wait_s: Wait = 0) -> Any:
        entry = service.catalogue.get(graph)
        await _until(lambda: entry.state in ("ready", "failed") or service.bus.closed, wait_s)
        return {**entry.to_dict(), "facts": entry.facts, "core": entry.core}

    again = "Try again to open a graph that could not be opened"

    @route("POST", "/v1/graphs/{graph}/open", again, models.GraphAnswer, 404, 409, 429, 503, status_code=202)
    async def reopen_graph(graph: str) -> Any:
        return (await service.record(service.reopen_graph, graph)).to_dict()

    @route("DELETE", "/v1/graphs/{graph}", "Unload a graph, or stop opening it", None, 404, 409, status_code=204)
    async def remove_graph(graph: str) -> None:
        await service.record(service.remove_graph, graph)


def _add_new_graphs(route: Route, service: Service) -> None:
    @route(
        "POST", "/v1/graphs", "Open a file below a data root, or generate a graph", models.GraphAnswer,
        404, 409, 413, 415, 429, 503, 507, status_code=202,
    )  # fmt: skip
    async def add_graph(wanted: GraphRequest, response: Response) -> Any:
        if (wanted.path is None) == (wanted.generator is None):
            raise Problem(422, "give either a path or a generator", "see /docs")
        origin: dict[str, Any] = {"format": wanted.format, "directed": wanted.directed}
        origin |= {"path": wanted.path} if wanted.generator is None else {"generator": wanted.generator.model_dump()}
        entry = await service.look(service.add_graph, wanted.id, origin)
        response.headers["Location"] = f"/v1/graphs/{entry.id}"
        return entry.to_dict()

    @route(
        "POST", "/v1/graphs/upload", "Open the graph file in the body", models.GraphAnswer,
        409, 413, 415, 429, 503, 507, status_code=202,
        openapi_extra={"requestBody": {"required": True, "content": _BINARY}},
    )  # fmt: skip
    async def upload(
        request: Request, response: Response, id: Annotated[GraphId, Query(description="the graph's id")],
        directed: bool | None = None,
    ) -> Any:  # fmt: skip
        service.compute.require_room()
        draft = service.journal.new_draft()
        try:
            await _save_body(request, draft, service.disk.make_room)
            entry = await service.look(service.add_upload, id, draft, {"upload": True, "directed": directed})
        except ClientDisconnect:  # the client is gone; the log has a line instead of a traceback
            raise Problem(400, "the upload ended too early", "send all of the file") from None
        finally:
            draft.unlink(missing_ok=True)
        response.headers["Location"] = f"/v1/graphs/{entry.id}"
        return entry.to_dict()


def _add_jobs(route: Route, service: Service) -> None:
    book = service.book

    @route("GET", "/v1/algorithms", "What can be computed", models.AlgorithmList)
    async def algorithms() -> Any:
        return {"algorithms": await asyncio.to_thread(service.algorithms)}

    @route("GET", "/v1/jobs", "Jobs, newest first", models.JobList)
    async def list_jobs(offset: Offset = 0, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Any:
        jobs = book.all()
        return {"jobs": [job.to_dict() for job in jobs[offset : offset + limit]], "total": len(jobs)}

    @route(
        "POST", "/v1/jobs", "Submit a job", models.JobAnswer, 404, 409, 413, 415, 429, 503, 507, status_code=202
    )  # fmt: skip
    async def submit(wanted: JobRequest, response: Response) -> Any:
        job = Job(
            wanted.graph, str(wanted.algorithm), dict(wanted.options), wanted.source, deadline_s=wanted.deadline_s
        )
        await service.accept(job)
        response.headers["Location"] = f"/v1/jobs/{job.id}"
        return job.to_dict()

    @route("GET", "/v1/jobs/{job_id}", "State of a job", models.JobAnswer, 404)
    async def get_job(job_id: str, wait_s: Wait = 0) -> Any:
        job = book.get(job_id)
        await _until(lambda: job.state in OVER or service.bus.closed, wait_s)
        return job.to_dict()

    @route("POST", "/v1/jobs/{job_id}/cancel", "Stop a job", models.JobAnswer, 404, 409, status_code=202)
    async def cancel(job_id: str) -> Any:
        job = book.get(job_id)
        await service.record(book.cancel, job)
        return job.to_dict()

    @route("DELETE", "/v1/jobs/{job_id}", "Forget a job that is over", None, 404, 409, status_code=204)
    async def forget(job_id: str) -> None:
        job = book.get(job_id)
        if job.state not in OVER:
            raise Problem(409, f"the job is {job.state}", "cancel it first")
        await service.record(book.forget, job)


def _add_results(route: Route, service: Service) -> None:
    book, journal = service.book, service.journal

    @route("GET", "/v1/jobs/{job_id}/trace", "Who did what when", models.TraceAnswer, 404)
    async def trace(job_id: str) -> Any:
        running = book.get(job_id).trace
        events = list(running.events) if running else await asyncio.to_thread(journal.read_trace, job_id)
        return {"job": job_id, "events": events}

    @route("GET", "/v1/jobs/{job_id}/result", "Rows of the result", models.ResultPage, 404, 409)
    async def result(job_id: str, run: Run = 0, offset: Offset = 0, limit: Limit = 1000) -> Any:
        found = await asyncio.to_thread(Result, journal, book.get(job_id), run)
        return await asyncio.to_thread(found.page, offset, min(limit, service.settings.max_page))

    @route(
        "GET", "/v1/jobs/{job_id}/result/{array}.npy", "One array as .npy", None, 404, 409, description="the array",
        content=_BINARY,
    )  # fmt: skip
    async def result_npy(job_id: str, array: str, run: Run = 0) -> Any:
        found = await asyncio.to_thread(Result, journal, book.get(job_id), run)
        pieces = await asyncio.to_thread(found.npy, array)
        return StreamingResponse(pieces, media_type="application/octet-stream")

    @route(
        "GET", "/v1/jobs/{job_id}/result.{form}", "All of it: LDBC text, Arrow or Parquet", None, 404, 406, 409, 507,
        description="the result", content={"text/plain": _TEXT, **_BINARY},
    )  # fmt: skip
    async def result_form(job_id: str, form: Literal["ldbc", "arrow", "parquet"], run: Run = 0) -> Any:
        found = await asyncio.to_thread(Result, journal, book.get(job_id), run)
        service.limits.require(found.bytes_of_form, "the result in this form")
        if form == "ldbc":
            return Response(await asyncio.to_thread(found.ldbc), media_type="text/plain; charset=utf-8")
        return Response(await asyncio.to_thread(found.table, form), media_type="application/octet-stream")


def _add_queries(route: Route, service: Service) -> None:
    problems = (404, 409, 429, 503, 504)

    @route("GET", "/v1/graphs/{graph}/levels", "How many vertices are how far from a source", models.LevelsAnswer,
           *problems)  # fmt: skip
    async def levels(graph: str, source: VertexId, deadline_s: Deadline = None) -> Any:
        return JSONResponse(await service.ask(graph, source, searches.tell_sizes, deadline_s=deadline_s))

    @route("GET", "/v1/graphs/{graph}/distance", "Edges between two vertices", models.DistanceAnswer, *problems)
    async def distance(graph: str, source: VertexId, target: VertexId, deadline_s: Deadline = None) -> Any:
        return JSONResponse(await service.ask(graph, source, searches.tell_distance, target, deadline_s=deadline_s))

    @route("GET", "/v1/graphs/{graph}/path", "A shortest path", models.PathAnswer, *problems)
    async def path(graph: str, source: VertexId, target: VertexId, deadline_s: Deadline = None) -> Any:
        return JSONResponse(await service.ask(graph, source, searches.tell_path, target, deadline_s=deadline_s))

    @route("GET", "/v1/graphs/{graph}/neighbours", "Who is within so many edges, nearest first",
           models.NeighboursAnswer, *problems)  # fmt: skip
    async def neighbours(
        graph: str, source: VertexId, hops: Annotated[int, Query(ge=0, le=2**31 - 1)] = 1, offset: Offset = 0,
        limit: Limit = 1000, deadline_s: Deadline = None,
    ) -> Any:  # fmt: skip
        asked = searches.Reach(hops, offset, min(limit, service.settings.max_page))
        return JSONResponse(await service.ask(graph, source, searches.tell_neighbours, asked, deadline_s=deadline_s))


def _add_events(route: Route, service: Service) -> None:
    @route(
        "GET", "/v1/events", "What happens, live (server-sent events)", None, 404, 429,
        description="events job, graph, worker, trace, gap, each with JSON data", content={"text/event-stream": _TEXT},
    )  # fmt: skip
    async def events(job: Annotated[str | None, Query(max_length=64, description="of one job only")] = None) -> Any:
        first: list[Published] = []
        if job is not None:
            known = service.book.get(job)
            running = list(known.trace.events) if known.trace else []
            first = [("job", known.to_dict()), *(("trace", {"job": job, **event}) for event in running)]
        return EventStream(service.bus, job, first)


def _add_pages(app: FastAPI) -> None:
    def file(name: str) -> Response:
        """Whole: Starlette would answer a wrong Range with a page of its own."""
        return Response((PAGE / name).read_bytes(), media_type=f"text/{_KINDS[Path(name).suffix]}; charset=utf-8")

    @app.get("/", include_in_schema=False)
    async def index() -> Any:
        return file("index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Any:
        return file("docs.html")

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Any:
        return Response(status_code=204)

    @app.get("/page/{name}", include_in_schema=False)
    async def part(name: str) -> Any:
        if name not in _PARTS:
            raise Problem(404, "there is no such part of the page", "open /")
        return file(name)


async def _save_body(request: Request, path: Path, make_room: Callable[[int], None]) -> None:
    """Write a body to a file, in pieces that are worth a thread; there must be room for each, however many come."""
    with path.open("wb") as file:

        def write(piece: bytearray) -> None:
            make_room(len(piece))
            file.write(piece)
            file.flush()  # so that it counts for the next

        waiting = bytearray()
        async for piece in request.stream():
            waiting += piece
            if len(waiting) >= _PIECE_BYTES:
                await asyncio.to_thread(write, waiting)
                waiting = bytearray()
        await asyncio.to_thread(write, waiting)


async def _until(condition: Callable[[], bool], wait_s: float) -> None:
    """Return when it is so, or after so long."""
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_s
    pause = 0.005
    while not condition() and loop.time() < until:
        await asyncio.sleep(pause)
        pause = min(0.1, pause * 1.5)
