"""Who gets in, and what browsers may send."""

import pytest

from support.services import serving

HTML = {"accept": "text/html"}


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path) as found:
        yield found


def test_strangers_learn_only_that_the_service_is_up(served) -> None:
    assert served.client.get("/health.json").json() == {"status": "up"}
    for path in ("/index.json", "/keys.json", "/nowhere.json"):
        answer = served.client.get(path)
        assert answer.status_code in (401, 404)
        assert set(answer.json()) == {"error"}
        assert set(answer.json()["error"]) == {"code", "message"}


@pytest.mark.parametrize(
    "wrong", ["Bearer x", "Bearer vc_aaaaaaaaaaaaaaaa_" + "A" * 43, "Basic eDp5", "Bearer", "Bearer \u00e9"]
)
def test_a_wrong_key_is_refused_and_noted(served, wrong) -> None:
    answer = served.client.get("/index.json", headers={"Authorization": wrong.encode()})
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthenticated"
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_revoked_key_is_refused_in_browsers_too(served) -> None:
    served.sign_in("mara")
    assert served.client.get("/index.json").json()["you"]["name"] == "mara"
    key = served.keys["mara"].split("_")[1]
    assert served.post("cora", f"/keys/{key}/revoke.json")["key"]["is_good"] is False
    assert served.client.get("/index.json").status_code == 401
    served.get("mara", "/index.json", 401)


def test_who_tries_many_keys_has_to_wait_and_others_do_not(served) -> None:
    codes = [served.client.get("/index.json", headers={"Authorization": "Bearer vc_x"}).status_code for _ in range(12)]
    assert codes[:10] == [401] * 10
    assert codes[-1] == 429
    served.get("mara", "/index.json", 429)  # from the same address, and not seen before
    assert served.client.post("/login", data={"key": "x"}).status_code == 429


def test_one_key_that_asks_too_often_is_refused_and_another_is_not(tmp_path) -> None:
    with serving(tmp_path, requests_per_second=0.1, burst=3) as served:
        for _ in range(3):
            served.get("mara", "/index.json")
        answer = served.client.get("/index.json", headers=served.headers("mara"))
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1
        served.get("noor", "/index.json")


def test_keys_are_for_curators_and_an_analyst_on_a_curators_page_is_refused_and_noted(served) -> None:
    assert "curator" in served.get("mara", "/keys.json", 403)["error"]["message"]
    served.post("mara", "/keys.json", {"name": "evil", "role": "curator"}, 403)
    served.post("otto", "/keys.json", {"name": "evil", "role": "curator"}, 403)
    refused = [entry.who for entry in served.service.audit.entries() if entry.outcome == "refused"]
    assert refused == ["otto", "mara", "mara"]
    names = [key["name"] for key in served.get("otto", "/keys.json")["keys"]]
    assert "evil" not in names


def test_a_form_without_the_token_of_its_session_changes_nothing(served) -> None:
    token = served.sign_in("cora")
    wish = {"name": "eve", "role": "analyst"}
    for headers in ({}, {"X-CSRF-Token": "x"}, {"X-CSRF-Token": token, "Sec-Fetch-Site": "cross-site"}):
        answer = served.client.post("/keys.json", json=wish, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert served.client.post("/logout", data={"csrf": "x"}).status_code == 403
    assert served.client.post("/keys.json", json=wish, headers={"X-CSRF-Token": token}).status_code == 201
    assert served.client.post("/logout", data={"csrf": token}, follow_redirects=False).status_code == 303
    assert served.client.get("/index.json").status_code == 401


def test_the_cookie_is_kept_from_scripts_and_other_sites(served) -> None:
    answer = served.client.post("/login", data={"key": served.keys["mara"]}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie
    answer = served.client.post("https://testserver/login", data={"key": served.keys["mara"]}, follow_redirects=False)
    assert "secure" in answer.headers["set-cookie"].lower()


@pytest.mark.parametrize("after", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x"])
def test_signing_in_leads_nowhere_else(served, after) -> None:
    answer = served.client.post("/login", data={"key": served.keys["mara"], "after": after}, follow_redirects=False)
    assert answer.headers["location"] == "/"


def test_a_browser_is_sent_to_sign_in_and_a_program_is_told(served) -> None:
    answer = served.client.get("/keys?x=1", headers=HTML, follow_redirects=False)
    assert answer.headers["location"] == "/login?after=%2Fkeys%3Fx%3D1"
    assert served.client.get("/keys", follow_redirects=False).status_code == 401


def test_every_answer_carries_the_policy_for_browsers(served) -> None:
    for path in ("/health.json", "/login", "/nowhere", "/static/veilcube.css", "/keys"):
        headers = served.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_a_body_that_is_too_large_or_is_not_json_is_refused_in_the_one_shape(served) -> None:
    headers = served.headers("cora") | {"content-type": "application/json"}
    large = served.client.post("/keys.json", content=b"x" * (2**20 + 1), headers=headers)
    assert (large.status_code, large.json()["error"]["code"]) == (413, "too_large")
    chunked = served.client.post("/keys.json", content=iter([b"x" * 2**19] * 4), headers=headers)
    assert chunked.status_code == 413
    broken = served.client.post("/keys.json", content=b"{nothing", headers=headers)
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, "not_json")
    wrong = served.post("cora", "/keys.json", {"name": "a/b", "role": "king"}, 422)["error"]
    assert wrong["code"] == "invalid"
    assert len(wrong["fields"]) == 2


def test_a_fault_tells_nothing(served, monkeypatch, caplog) -> None:
    def broken(*_: object) -> None:
        raise ValueError("exact count 4711")

    monkeypatch.setattr(type(served.service.keys), "all", broken)
    answer = served.client.get("/keys.json", headers=served.headers("cora"))
    assert answer.status_code == 500
    assert "4711" not in answer.text + caplog.text
    assert answer.json()["error"]["message"].split()[-1] in caplog.text


def test_a_page_is_html_and_json_and_both_are_what_openapi_tells(served) -> None:
    served.sign_in("otto")
    assert "<td>mara</td>" in served.client.get("/keys", headers=HTML).text
    assert "mara" in [key["name"] for key in served.client.get("/keys.json").json()["keys"]]
    told = served.client.get("/openapi.json").json()
    assert "/keys.json" in told["paths"]
    assert "/keys" not in told["paths"]
