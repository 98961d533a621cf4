"""What is made of a release over HTTP costs nothing and is what the library makes."""

import io
import zipfile

import pandas as pd
import pytest

import veilcube as vc
from support.datasets import SCHEMA
from support.services import serving


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("service")) as found:
        made = vc.release(vc.Cube(SCHEMA, [[[5] * 3] * 2] * 40), epsilon=1, strategy="identity")
        made.save(found.service.shelf.files.path("people"))
        yield found


def test_a_refined_release_answers_and_curators_keep_it(served) -> None:
    asked = {"facts": ["total = 1200"], "queries": ["age < 90"], "source": "public"}
    told = served.post("mara", "/releases/people/refine.json", asked)
    assert told["fits"] is True
    assert told["results"][0]["after"]["value"] == pytest.approx(1200)
    assert told["results"][0]["before"]["value"] != told["results"][0]["after"]["value"]
    served.post("mara", "/releases/people/refine.json", asked | {"save_as": "mine"}, 403)
    served.post("cora", "/releases/people/refine.json", asked | {"save_as": "../mine"}, 400)
    served.post("cora", "/releases/people/refine.json", asked | {"save_as": "people"}, 409)
    served.post("cora", "/releases/people/refine.json", asked | {"save_as": "refined"})
    assert served.get("mara", "/releases/refined/count.json")["value"] == pytest.approx(1200)
    served.post("mara", "/releases/people/refine.json", {"facts": ["nonsense"]}, 422)


def test_synthetic_rows_and_a_site_are_downloads_that_leave_nothing_behind(served) -> None:
    get = lambda path: served.client.get(path, headers=served.headers("mara"))  # noqa: E731
    rows = pd.read_csv(io.BytesIO(get("/releases/people/synthetic.csv?rows=50").content), comment="#")
    assert list(rows.columns) == list(SCHEMA.names)
    assert len(rows) == 50
    with zipfile.ZipFile(io.BytesIO(get("/releases/people/site.zip").content)) as site:
        names = site.namelist()
        assert {"index.html", "data.js", "release.veil", "card.md"} <= set(names)
    assert get("/releases/people/synthetic.csv?rows=0").status_code == 422
    assert get("/releases/none/site.zip").status_code == 404
    assert list(served.service.settings.below("work").iterdir()) == []
