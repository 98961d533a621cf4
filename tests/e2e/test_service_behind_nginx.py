"""The service behind nginx, as the docs show it: TLS, cookies that stay with it, and the addresses of clients."""

import datetime
import re
import shutil
import socket
import subprocess
import time
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from support.served_processes import start_service

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "serve.md"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def certify(folder: Path) -> None:
    """Write a certificate for this machine, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
    (folder / "counts.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "counts.key").write_bytes(key.private_bytes(*plain))


def configuration(folder: Path, port: int, service: str) -> Path:
    """Return a configuration of nginx around the block of the docs, with this machine's ports and paths in it."""
    (block,) = re.findall(r"^```nginx\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    changes = {"listen 443": f"listen 127.0.0.1:{port}", "http://127.0.0.1:8000": service, "/etc/ssl/": f"{folder}/"}
    for old, new in changes.items():
        assert old in block
        block = block.replace(old, new)
    paths = [f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
    http = "\n".join([*paths, "access_log off;", block])
    path = folder / "nginx.conf"
    path.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\nhttp {{\n{http}\n}}\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.skipif(NGINX is None, reason="needs nginx: apt-get install nginx-light")
def test_the_configuration_of_the_docs_gives_tls_and_true_addresses(tmp_path: Path) -> None:
    service = start_service(tmp_path / "served", "--behind-proxy")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    certify(tmp_path)
    command = [str(NGINX), "-e", str(tmp_path / "error.log"), "-p", str(tmp_path)]
    proxy = subprocess.Popen([*command, "-c", str(configuration(tmp_path, port, service.url))])
    try:
        with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=str(tmp_path / "counts.pem")) as client:
            deadline = time.monotonic() + 60
            while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            assert client.get("/health.json").json() == {"status": "up"}
            answer = client.post("/login", data={"key": service.key}, headers={"X-Forwarded-For": "10.9.8.7"})
            assert answer.status_code == 303
            assert "secure" in answer.headers["set-cookie"].lower()
            assert answer.headers["strict-transport-security"].startswith("max-age")
            assert client.get("/index.json").json()["you"]["role"] == "curator"
            (entry,) = [one for one in client.get("/log.json").json()["entries"] if one["action"] == "sign in"]
            assert entry["what"]["address"] == "127.0.0.1"  # not what the client wrote
            large = client.post("/keys.json", content=b"x" * 2_000_000)
            assert large.status_code == 413
    finally:
        proxy.terminate()
        proxy.wait(60)
        service.kill()
