from .answers import (
    Json as Json,
    answer_problem as answer_problem,
    as_plain as as_plain,
    problem_json as problem_json,
)
from .context import Service as Service, TheService as TheService
from .forms import form_route as form_route, from_form as from_form
from .gate import (
    SESSION_COOKIE as SESSION_COOKIE,
    AnyCaller as AnyCaller,
    Asker as Asker,
    Curator as Curator,
    Overseer as Overseer,
    client_address as client_address,
    end_session_cookie as end_session_cookie,
    require_same_site as require_same_site,
    set_session_cookie as set_session_cookie,
)
from .guards import BodyGuard as BodyGuard, FaultGuard as FaultGuard, HeaderGuard as HeaderGuard
from .pages import (
    PROBLEMS as PROBLEMS,
    ROOT as ROOT,
    Name as Name,
    data_route as data_route,
    page as page,
    show as show,
    show_problem as show_problem,
)
