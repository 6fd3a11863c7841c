"""The HTTP side: routes to what the service can do. Nothing here computes; everything long happens elsewhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from hybrid import __version__
from hybrid.service.http import forms
from hybrid.service.http.access import TRUSTED, Gate
from hybrid.service.http.event_stream import EventStream
from hybrid.service.http.models import (
    AlgorithmList,
    DistanceAnswer,
    FileList,
    GraphAnswer,
    GraphDetails,
    GraphList,
    GraphRequest,
    Health,
    JobAnswer,
    JobList,
    JobRequest,
    LevelsAnswer,
    NeighboursAnswer,
    PathAnswer,
    ProblemDocument,
    Readiness,
    ResultPage,
    TraceAnswer,
    VertexId,
)
from hybrid.service.http.problems import MEDIA_TYPE, TITLES, Problem, problem_of
from hybrid.service.queue import searches
from hybrid.service.queue.jobs import OVER, Job
from hybrid.service.service import Service

_log = logging.getLogger(__name__)
PAGE = Path(__file__).parent.parent / "page"
_PARTS = frozenset(path.name for path in PAGE.iterdir() if path.suffix in (".css", ".js"))
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
_LONGEST_WAIT_S = 60.0
_PIECE_BYTES = 1 << 20
Wait = Annotated[float, Query(ge=0, le=_LONGEST_WAIT_S, description="answer when it is over, or after so long")]
Deadline = Annotated[float | None, Query(gt=0, le=3600, description="give up after so long")]
Offset = Annotated[int, Query(ge=0, le=2**62)]
Limit = Annotated[int, Query(ge=1, le=1_000_000)]
Run = Annotated[int, Query(ge=0, le=1_000_000, description="of a job with several sources, which one")]


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may answer with, for the document."""
    every = {400, 401, 403, 405, 422, *statuses}
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    return {status: {"description": TITLES[status], "content": content} for status in sorted(every)}


def make_app(service: Service, token: str | None) -> Any:
    """The application around a service, with the gate around it."""
    app = FastAPI(
        title="Tandem", version=__version__, docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json",
        summary="Graphs in memory, exact answers over HTTP.", responses={},
    )  # fmt: skip
    _add_problems(app)
    _add_state(app, service)
    _add_graphs(app, service)
    _add_new_graphs(app, service)
    _add_jobs(app, service)
    _add_results(app, service)
    _add_queries(app, service)
    _add_events(app, service)
    _add_pages(app)
    _complete_document(app, secured=token is not None)
    return Gate(app, service.settings, token, service.metrics)


def _respond(problem: Problem) -> JSONResponse:
    return JSONResponse(
        problem.document(), status_code=problem.status, media_type=MEDIA_TYPE, headers=problem.headers()
    )


def _add_problems(app: FastAPI) -> None:
    @app.exception_handler(Problem)
    async def refuse(request: Request, problem: Problem) -> Response:
        return _respond(problem)

    @app.exception_handler(OSError)
    async def explain_disk(request: Request, error: OSError) -> Response:
        _log.error("%s %s: %s", request.method, request.url.path, error)
        return _respond(problem_of(error))

    @app.exception_handler(Exception)
    async def admit(request: Request, error: Exception) -> Response:
        return _respond(problem_of(error))  # the server writes the traceback to the log

    @app.exception_handler(RequestValidationError)
    async def explain(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
        return _respond(Problem(422, f"{place or 'request'}: {first['msg']}", "/docs tells what is expected"))

    @app.exception_handler(HTTPException)
    async def translate(request: Request, error: HTTPException) -> Response:
        answer = _respond(Problem(error.status_code, str(error.detail), "/docs lists what there is"))
        for name, value in (error.headers or {}).items():
            answer.headers[name] = value
        return answer


def _complete_document(app: FastAPI, *, secured: bool) -> None:
    """OpenAPI as it is: problems instead of FastAPI's own validation errors, and the token."""
    make: Callable[[], dict[str, Any]] = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema:
            return app.openapi_schema
        document = make()
        parts = document.setdefault("components", {})
        schemas = parts.setdefault("schemas", {})
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        schemas["ProblemDocument"] = ProblemDocument.model_json_schema()
        if secured:
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}]
        return document

    app.openapi = complete  # type: ignore[method-assign]


def _add_state(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", response_model=Health, tags=["state"], summary="The process answers", responses=refusals())
    async def healthz() -> Any:
        return {"status": "ok"}

    @app.get(
        "/readyz", response_model=Readiness, tags=["state"], summary="Every graph can be asked",
        responses={**refusals(), 503: {"model": Readiness, "description": "not yet"}},
    )  # fmt: skip
    async def readyz(request: Request, response: Response) -> Any:
        ready, reasons = service.readiness()
        response.status_code = 200 if ready else 503
        if not request.scope.get(TRUSTED):  # without the token: whether, and nothing of whose or what
            reasons = [] if ready else ["graphs are being opened, or the service is shutting down"]
            return {"ready": ready, "reasons": reasons, "worker": service.workers.state, "workers": [], "graphs": {}}
        graphs = {entry.id: entry.state for entry in service.catalogue.all()}
        workers = service.workers
        return {
            "ready": ready, "reasons": reasons, "worker": workers.state, "workers": workers.tell(), "graphs": graphs,
            "ranks": None if service.rank_pool is None else service.rank_pool.state.to_dict(),
        }  # fmt: skip

    @app.get("/metrics", response_class=PlainTextResponse, tags=["state"], summary="Prometheus", responses=refusals())
    async def metrics() -> Any:
        return PlainTextResponse(service.metrics.render(service.gauges()), media_type="text/plain; version=0.0.4")

    @app.get("/v1/algorithms", response_model=AlgorithmList, tags=["jobs"], summary="What can be computed",
             responses=refusals())  # fmt: skip
    async def algorithms() -> Any:
        return {"algorithms": await asyncio.to_thread(service.algorithms)}


def _add_graphs(app: FastAPI, service: Service) -> None:
    @app.get("/v1/graphs", response_model=GraphList, tags=["graphs"], summary="Graphs in memory", responses=refusals())
    async def list_graphs() -> Any:
        return {"graphs": [entry.to_dict() for entry in service.catalogue.all()]}

    @app.get("/v1/files", response_model=FileList, tags=["graphs"], summary="Files below the data roots",
             responses=refusals())  # fmt: skip
    async def list_files() -> Any:
        return {"files": await asyncio.to_thread(service.roots.listing)}

    @app.get("/v1/graphs/{graph}", response_model=GraphDetails, tags=["graphs"], summary="One graph",
             responses=refusals(404))  # fmt: skip
    async def get_graph(graph: str, wait_s: Wait = 0) -> Any:
        entry = service.catalogue.get(graph)
        await _until(lambda: entry.state in ("ready", "failed") or service.bus.closed, wait_s)
        return {**entry.to_dict(), "facts": entry.facts, "core": entry.core}

    @app.post("/v1/graphs/{graph}/open", status_code=202, response_model=GraphAnswer, tags=["graphs"],
              summary="Try again to open a graph that could not be opened",
              responses=refusals(404, 409, 429, 503))  # fmt: skip
    async def reopen_graph(graph: str) -> Any:
        return (await service.record(service.reopen_graph, graph)).to_dict()

    @app.delete("/v1/graphs/{graph}", status_code=204, tags=["graphs"], summary="Unload a graph, or stop opening it",
                responses=refusals(404, 409))  # fmt: skip
    async def remove_graph(graph: str) -> None:
        await service.record(service.remove_graph, graph)


def _add_new_graphs(app: FastAPI, service: Service) -> None:
    @app.post(
        "/v1/graphs", status_code=202, response_model=GraphAnswer, tags=["graphs"],
        summary="Open a file below a data root, or generate a graph",
        responses=refusals(404, 409, 413, 415, 429, 503, 507),
    )  # fmt: skip
    async def add_graph(wanted: GraphRequest, response: Response) -> Any:
        if (wanted.path is None) == (wanted.generator is None):
            raise Problem(422, "give either a path or a generator", "see /docs")
        origin: dict[str, Any] = {"format": wanted.format, "directed": wanted.directed}
        origin |= {"path": wanted.path} if wanted.generator is None else {"generator": wanted.generator.model_dump()}
        entry = await service.look(service.add_graph, wanted.id, origin)
        response.headers["Location"] = f"/v1/graphs/{entry.id}"
        return entry.to_dict()

    @app.post(
        "/v1/graphs/upload", status_code=202, response_model=GraphAnswer, tags=["graphs"],
        summary="Open the graph file in the body", responses=refusals(409, 413, 415, 429, 503, 507),
        openapi_extra={"requestBody": {"required": True, "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}},
    )  # fmt: skip
    async def upload(
        request: Request,
        response: Response,
        id: Annotated[str, Query(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="the graph's id")],
        directed: bool | None = None,
    ) -> Any:
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


def _add_jobs(app: FastAPI, service: Service) -> None:
    book = service.book

    @app.get("/v1/jobs", response_model=JobList, tags=["jobs"], summary="Jobs, newest first", responses=refusals())
    async def list_jobs(offset: Offset = 0, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Any:
        jobs = book.all()
        return {"jobs": [job.to_dict() for job in jobs[offset : offset + limit]], "total": len(jobs)}

    @app.post("/v1/jobs", status_code=202, response_model=JobAnswer, tags=["jobs"], summary="Submit a job",
              responses=refusals(404, 409, 413, 415, 429, 503, 507))  # fmt: skip
    async def submit(wanted: JobRequest, response: Response) -> Any:
        job = Job(
            wanted.graph, str(wanted.algorithm), dict(wanted.options), wanted.source, deadline_s=wanted.deadline_s
        )
        await service.accept(job)
        response.headers["Location"] = f"/v1/jobs/{job.id}"
        return job.to_dict()

    @app.get("/v1/jobs/{job_id}", response_model=JobAnswer, tags=["jobs"], summary="State of a job",
             responses=refusals(404))  # fmt: skip
    async def get_job(job_id: str, wait_s: Wait = 0) -> Any:
        job = book.get(job_id)
        await _until(lambda: job.state in OVER or service.bus.closed, wait_s)
        return job.to_dict()

    @app.post("/v1/jobs/{job_id}/cancel", status_code=202, response_model=JobAnswer, tags=["jobs"],
              summary="Stop a job", responses=refusals(404, 409))  # fmt: skip
    async def cancel(job_id: str) -> Any:
        job = book.get(job_id)
        await service.record(book.cancel, job)
        return job.to_dict()

    @app.delete("/v1/jobs/{job_id}", status_code=204, tags=["jobs"], summary="Forget a job that is over",
                responses=refusals(404, 409))  # fmt: skip
    async def forget(job_id: str) -> None:
        job = book.get(job_id)
        if job.state not in OVER:
            raise Problem(409, f"the job is {job.state}", "cancel it first")
        await service.record(book.forget, job)


def _add_results(app: FastAPI, service: Service) -> None:
    book, journal = service.book, service.journal

    @app.get("/v1/jobs/{job_id}/trace", response_model=TraceAnswer, tags=["jobs"], summary="Who did what when",
             responses=refusals(404))  # fmt: skip
    async def trace(job_id: str) -> Any:
        job = book.get(job_id)
        running = job.trace
        events = list(running.events) if running else await asyncio.to_thread(journal.read_trace, job_id)
        return {"job": job_id, "events": events}

    @app.get(
        "/v1/jobs/{job_id}/result", response_model=ResultPage, tags=["jobs"], summary="Rows of the result",
        responses=refusals(404, 409),
    )  # fmt: skip
    async def result(job_id: str, run: Run = 0, offset: Offset = 0, limit: Limit = 1000) -> Any:
        job = book.get(job_id)
        return await asyncio.to_thread(forms.page, journal, job, run, offset, min(limit, service.settings.max_page))

    binary = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}

    @app.get(
        "/v1/jobs/{job_id}/result/{array}.npy", tags=["jobs"], summary="One array as .npy", response_class=Response,
        responses={**refusals(404, 409), 200: {"description": "the array", **binary}},
    )  # fmt: skip
    async def result_npy(job_id: str, array: str, run: Run = 0) -> Any:
        pieces = await asyncio.to_thread(forms.as_npy, journal, book.get(job_id), array, run)
        return StreamingResponse(pieces, media_type="application/octet-stream")

    @app.get(
        "/v1/jobs/{job_id}/result.{form}", tags=["jobs"], summary="All of it: LDBC text, Arrow or Parquet",
        response_class=Response,
        responses={**refusals(404, 406, 409, 507), 200: {"description": "the result", "content": {
            "text/plain": {"schema": {"type": "string"}}, **binary["content"]}}},
    )  # fmt: skip
    async def result_form(job_id: str, form: Literal["ldbc", "arrow", "parquet"], run: Run = 0) -> Any:
        job = book.get(job_id)
        needed = await asyncio.to_thread(forms.bytes_of_form, journal, job)
        service.limits.require(needed, "the result in this form")
        if form == "ldbc":
            text = await asyncio.to_thread(forms.as_ldbc, journal, job, run)
            return Response(text, media_type="text/plain; charset=utf-8")
        table = await asyncio.to_thread(forms.as_table, journal, job, run, form)
        return Response(table, media_type="application/octet-stream")


def _add_queries(app: FastAPI, service: Service) -> None:
    problems = refusals(404, 409, 429, 503, 504)

    @app.get("/v1/graphs/{graph}/levels", response_model=LevelsAnswer, tags=["queries"],
             summary="How many vertices are how far from a source", responses=problems)  # fmt: skip
    async def levels(graph: str, source: VertexId, deadline_s: Deadline = None) -> Any:
        return JSONResponse(await service.ask(graph, source, searches.tell_sizes, deadline_s=deadline_s))

    @app.get("/v1/graphs/{graph}/distance", response_model=DistanceAnswer, tags=["queries"],
             summary="Edges between two vertices", responses=problems)  # fmt: skip
    async def distance(graph: str, source: VertexId, target: VertexId, deadline_s: Deadline = None) -> Any:
        answer = await service.ask(graph, source, searches.tell_distance, target=target, deadline_s=deadline_s)
        return JSONResponse(answer)

    @app.get("/v1/graphs/{graph}/path", response_model=PathAnswer, tags=["queries"], summary="A shortest path",
             responses=problems)  # fmt: skip
    async def path(graph: str, source: VertexId, target: VertexId, deadline_s: Deadline = None) -> Any:
        answer = await service.ask(graph, source, searches.tell_path, target=target, deadline_s=deadline_s)
        return JSONResponse(answer)

    @app.get("/v1/graphs/{graph}/neighbours", response_model=NeighboursAnswer, tags=["queries"],
             summary="Who is within so many edges, nearest first", responses=problems)  # fmt: skip
    async def neighbours(
        graph: str,
        source: VertexId,
        hops: Annotated[int, Query(ge=0, le=2**31 - 1)] = 1,
        offset: Offset = 0,
        limit: Limit = 1000,
        deadline_s: Deadline = None,
    ) -> Any:
        asked = searches.Reach(hops, offset, min(limit, service.settings.max_page))
        return JSONResponse(await service.ask(graph, source, searches.tell_neighbours, asked, deadline_s=deadline_s))


def _add_events(app: FastAPI, service: Service) -> None:
    @app.get(
        "/v1/events", tags=["events"], summary="What happens, live (server-sent events)", response_class=Response,
        responses={**refusals(404, 429), 200: {
            "description": "events job, graph, worker, trace, gap, each with JSON data",
            "content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    )  # fmt: skip
    async def events(job: Annotated[str | None, Query(max_length=64, description="of one job only")] = None) -> Any:
        first: list[tuple[str, dict[str, Any]]] = []
        if job is not None:
            known = service.book.get(job)
            first = [("job", known.to_dict())]
            running = known.trace
            first += [("trace", {"job": job, **event}) for event in (list(running.events) if running else [])]
        return EventStream(service.bus, job, first)


def _add_pages(app: FastAPI) -> None:
    def file(name: str) -> Response:
        """Whole: Starlette would answer a wrong Range with a page of its own."""
        return Response((PAGE / name).read_bytes(), media_type=_KINDS[Path(name).suffix])

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
