"""The addresses of the studio. Each page is made by one worker, because a session is for one thread at a time.

    /                       the folder: tables and policies
    /p/NAME/SCREEN          a screen of a policy; its forms are sent to the same address and answered by a redirect
    /p/NAME/undo            takes the last change back
    /p/NAME/at              what the slider shows, as JSON; answered beside the worker
    /static/...             style and script

What must never change: every request passes the guard first; an error that was made on purpose is shown as the command line
words it, any other by its type alone, because an engine's message can quote a value of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from attrpriv.errors import AttrprivError, UsageError
from attrpriv.pictures.svg import STYLE
from attrpriv.studio.asked import Asked, Studio
from attrpriv.studio.draft import Draft, StaleTextError
from attrpriv.studio.folder import Folder
from attrpriv.studio.html import Html, h, paragraph, together
from attrpriv.studio.layout import SCREENS, page
from attrpriv.studio.security import Guard, Keys
from attrpriv.studio.worker import Worker

if TYPE_CHECKING:
    from starlette.requests import Request

_STATIC = {"style.css": "text/css", "studio.js": "text/javascript"}
_SCREENS = (*SCREENS, "report")


def make_app(folder: Folder, keys: Keys) -> Starlette:
    """The studio of one folder."""
    studio = Studio(folder, keys)
    worker = Worker()

    def by_worker(work: Callable[[Request], Response]) -> Callable[[Request], Any]:
        def surely(request: Request) -> Response:
            try:
                return work(request)
            except AttrprivError as error:  # no such policy
                return _lost(studio, error)
            except Exception as error:
                return _lost(studio, unexpected(error), 500)

        async def answer(request: Request) -> Response:
            return await worker.done(lambda: surely(request))

        return answer

    def asked(request: Request, screen: str) -> Asked:
        name = request.path_params.get("name")
        draft = None if name is None else Draft(folder, name)
        return Asked(studio, screen, draft, request.scope.get("attrpriv.form", {}), dict(request.query_params))

    @by_worker
    def shown(request: Request) -> Response:
        screen = request.path_params.get("screen", "start")
        if screen != "start" and screen not in _SCREENS:
            return _lost(studio)
        return _page(asked(request, screen))

    @by_worker
    def sent(request: Request) -> Response:
        screen = request.path_params.get("screen", "start")
        return _done(asked(request, screen))

    async def at(request: Request) -> Response:
        from attrpriv.studio.slider import at_epsilon

        try:
            return JSONResponse(at_epsilon(asked(request, "compare")))
        except AttrprivError as error:
            return JSONResponse({"refused": str(error)}, status_code=422)
        except Exception as error:
            return JSONResponse({"refused": unexpected(error)}, status_code=500)

    async def static(request: Request) -> Response:
        name = request.path_params["file"]
        if name == "pictures.css":
            return Response(STYLE, media_type="text/css")
        if name not in _STATIC:
            return _lost(studio)
        return Response(files("attrpriv.studio").joinpath(name).read_text(encoding="utf-8"), media_type=_STATIC[name])

    routes = [
        Route("/", shown, methods=["GET"]),
        Route("/", sent, methods=["POST"]),
        Route("/static/{file}", static, methods=["GET"]),
        Route("/p/{name}/at", at, methods=["GET"]),
        Route("/p/{name}/{screen}", shown, methods=["GET"]),
        Route("/p/{name}/{screen}", sent, methods=["POST"]),
    ]

    async def nothing(request: Request, error: Exception) -> Response:
        return _lost(studio)

    app = Starlette(routes=routes, middleware=[Middleware(Guard, keys=keys)], exception_handlers={404: nothing, 405: nothing})
    app.router.redirect_slashes = False
    return app


def _page(asked: Asked, problem: AttrprivError | str | None = None, status: int = 200) -> Response:
    """A screen; what cannot be shown is said in its place."""
    screen = import_module(f"attrpriv.studio.pages.{asked.screen}")
    inside: Html = together()
    try:
        inside = screen.show(asked)
    except AttrprivError as error:
        problem = problem or error
    except Exception as error:
        problem = problem or unexpected(error)
    return HTMLResponse(page(asked, screen.TITLE, inside, problem), status_code=status)


def _done(asked: Asked) -> Response:
    """What a form asks for, then the way to the page that shows it; the same page where it cannot be done."""
    if asked.screen == "undo":
        return _undone(asked)
    screen = import_module(f"attrpriv.studio.pages.{asked.screen}") if asked.screen in (*_SCREENS, "start") else None
    act = getattr(screen, "act", None)
    if act is None:
        raise UsageError("page: has no form. Got one.")
    try:
        return RedirectResponse(act(asked), status_code=303)
    except StaleTextError as error:
        return _page(Asked(asked.studio, asked.screen, asked.named), error, 409)
    except AttrprivError as error:
        return _page(asked, error, 422)
    except Exception as error:
        return _page(asked, unexpected(error), 500)


def _undone(asked: Asked) -> Response:
    back = asked.one("back") if asked.one("back") in SCREENS else "files"
    here = Asked(asked.studio, back, asked.named)
    try:
        asked.draft.undo(asked.seen)
    except StaleTextError as error:
        return _page(here, error, 409)
    except AttrprivError as error:
        return _page(here, error, 422)
    return RedirectResponse(here.address(done="undone"), status_code=303)


def unexpected(error: Exception) -> str:
    """An error that nobody made on purpose: its type, and never its message."""
    return f"unexpected {type(error).__name__}. What was released before, if anything, is in the ledger. Please report it."


def _lost(studio: Studio, error: AttrprivError | str | None = None, status: int = 404) -> Response:
    inside = together(paragraph("There is no such page."), h("p", h("a", "To the folder", href="/")))
    return HTMLResponse(page(Asked(studio), "Not found", inside, error), status_code=status)
