"""BS7: whatever an address looks like, nothing of ours that is not public is ever connected to."""

from __future__ import annotations

import gzip
import ssl
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from klerai.http import AddressRefused, AnswerTooLarge, fetched, guarded_client
from tests.fakes.outside_server import Names, Page, Website, Wires, website
from tests.harness.scenario import Scenario

PUBLIC = "93.184.215.14"
LOOPBACK = [
    *("127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "127.0.0.1.", "localhost", "LOCALHOST", "localhost."),
    *("2130706433", "0x7f000001", "017700000001", "0x7f.1", "0x7f.0.0.1", "0177.0.0.1", "0177.0.0.01", "0x7F.0x1"),
    *("00000177.0.0.1", "127.0x1", "127.0.01", "0", "0.0.0.0", "0x0", "00", "0.1", "127。0。0。1", "127．0．0．1"),
    *("１２７.0.0.1", "①②⑦.0.0.1", "٠.0.0.1", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "127.0.0.1%00.example", "127.0.0.1%2eexample", "4294967297"),
]
PRIVATE = [
    *("10.0.0.1", "10.255.255.255", "0xa.1", "012.0.0.1", "167772161", "172.16.0.1", "172.31.255.254", "192.168.0.1"),
    *("3232235521", "0xC0A80001", "100.64.0.1", "100.127.255.254", "198.18.0.1", "192.0.0.1", "192.0.0.192"),
    *("192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "240.0.0.1", "255.255.255.255", "224.0.0.1"),
    *("239.255.255.250", "233.252.0.1", "0.0.0.1"),
]
METADATA = [
    *("169.254.169.254", "2852039166", "0xA9FEA9FE", "0251.0376.0251.0376", "0xa9.254.0251.254", "169.254.43518"),
    *("169.254.170.2", "169.254.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "169.254.42.42"),
]
SIXES = [
    *(
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[::ffff:0:7f00:1]",
    ),
    *(
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "[fe80::1%25lo]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "[2002:7f00:1::]",
    ),
    *("[64:ff9b::7f00:1]", "[64:ff9b:1::a9fe:a9fe]", "[2001:0:7f00:1::]", "[fe80::5efe:7f00:1]", "[2001:db8::1]"),
    *("[2606:4700:4700::1111]", "[::ffff:8.8.8.8]", "[1::2::3]", "[127.0.0.1]"),
]
# What a name stands for that anybody may have registered.
NAMED = {
    "loopback.example": ["127.0.0.1"],
    "link-local.example": ["169.254.0.7"],
    "metadata.example": ["169.254.169.254"],
    "metadata.google.internal": ["169.254.169.254"],
    "private.example": ["192.168.1.1"],
    "office.example": ["10.1.2.3"],
    "docker.example": ["172.17.0.1"],
    "carrier.example": ["100.64.0.9"],
    "multicast.example": ["224.0.0.251"],
    "broadcast.example": ["255.255.255.255"],
    "nowhere.example": ["0.0.0.0"],
    "azure.example": ["168.63.129.16"],
    "six.example": ["::1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "global-six.example": ["2606:4700:4700::1111"],
    "first-good.example": [PUBLIC, "127.0.0.1"],
    "last-good.example": ["10.0.0.1", PUBLIC],
    "nothing.example": [],
    "no-address.example": ["not an address"],
    "loopback.example.": ["127.0.0.1"],
    "xn--lpback-wxa.example": ["127.0.0.1"],
    "127.0.0.1.nip.example": ["127.0.0.1"],
}
WRITTEN = [
    *("http://user@127.0.0.1:{port}/", "http://user:password@good.example:{port}/", "http://@127.0.0.1:{port}/"),
    *("http://good.example:{port}@127.0.0.1:{port}/", "http://good.example\\@127.0.0.1:{port}/"),
    *("http://127.0.0.1:{port}\\@good.example/", "http://good.example%40127.0.0.1:{port}/", "http:127.0.0.1:{port}/"),
    *("http:///127.0.0.1:{port}/", "//127.0.0.1:{port}/", "127.0.0.1:{port}", "http://", "http:///", "", " "),
    *("ftp://good.example:{port}/", "file:///etc/passwd", "gopher://127.0.0.1:{port}/_x", "ws://good.example:{port}/"),
    *("data:text/plain,hello", "javascript:alert(1)", "unix:///var/run/docker.sock", "http+unix://%2Frun/x"),
    *("http://127.0.0.1:{port}#@good.example/", "http://127.0.0.1:{port}?@good.example/", "http://good.example:0/"),
    *("http://good.example:22/", "http://good.example:5432/", "http://good.example:6379/", "http://good.example:65536/"),
    *("http://good.example:{port}\t@127.0.0.1/", "http://good.example\r\nHost: x:{port}/", "http://good.example:-80/"),
]  # fmt: skip
CONTROLS = [
    *(f"http://public{number}.example/" for number in range(10)),
    *("https://public.example/", "http://public.example:80/page?q=1#part", "http://PUBLIC.example/", "HTTP://public.example/"),
    *("http://93.184.215.14/", "http://1.1.1.1/", "http://8.8.8.8/", "http://public.example./", "http://bücher.example/"),
    *("http://sub.domain.public.example/a/b/../c", "http://public.example:443/", "http://1.0.0.1:80/"),
]  # fmt: skip


@pytest.fixture(scope="module")
def canary() -> Iterator[Website]:
    """Listens on every address of this machine, and should hear nothing."""
    with website() as site:
        yield site


def names(**more: list[list[str]]) -> Names:
    return Names({host: [addresses] for host, addresses in NAMED.items()} | {"good.example": [[PUBLIC]]} | more)


async def refused(address: str, canary: Website, resolve: Names) -> Exception:
    """The error of one request on a port that is allowed; whatever it connects to, the canary hears it."""
    wires = Wires(canary.port)
    async with guarded_client(ports={80, canary.port}, resolve=resolve, network=wires, timeout_seconds=2) as client:
        with pytest.raises((httpx2.HTTPError, httpx2.InvalidURL)) as caught:
            await fetched(client, address)
    return caught.value


@pytest.mark.scenario("BS7")
async def test_no_way_to_write_an_address_leads_to_one_that_is_not_public(scenario: Scenario, canary: Website) -> None:
    hosts = ["localhost", "LOCALHOST", "localhost."]
    known = names(**{host: [["127.0.0.1"]] for host in hosts})
    addresses = [f"http://{host}:{canary.port}/" for host in (*LOOPBACK, *PRIVATE, *METADATA, *SIXES, *NAMED)]
    addresses += [form.format(port=canary.port) for form in WRITTEN if "good.example:{port}/" not in form]
    before = canary.connections
    for address in dict.fromkeys(addresses):
        await refused(address, canary, known)
    scenario.n = len(set(addresses))
    assert scenario.n >= 60
    scenario.must_be_zero(connections=canary.connections - before)


@pytest.mark.parametrize("address", [form for form in WRITTEN if "good.example:{port}/" in form])
async def test_a_good_host_is_refused_where_the_address_brings_a_password_or_another_scheme(
    canary: Website, address: str
) -> None:
    wires = Wires(canary.port)
    async with guarded_client(ports={80, canary.port}, resolve=names(), network=wires) as client:
        with pytest.raises((httpx2.HTTPError, httpx2.InvalidURL)):
            await fetched(client, address.format(port=canary.port))
    assert wires.connected == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "metadata.example", "private.example", "first-good.example", "six.example"]
)
async def test_a_refusal_says_so_in_a_sentence(canary: Website, host: str) -> None:
    error = await refused(f"http://{host}:{canary.port}/", canary, names())
    assert isinstance(error, AddressRefused)
    assert str(error) == "It is not a public address."


@pytest.mark.parametrize("address", [control for control in CONTROLS if not control.startswith("https")])
async def test_public_addresses_are_reached_under_their_own_name(canary: Website, address: str) -> None:
    wires = Wires(canary.port)
    url = httpx2.URL(address)
    hosts = {url.raw_host.decode(): [[PUBLIC]]} if url.host.lower().rstrip(".").endswith("example") else {}
    async with guarded_client(resolve=Names(hosts), network=wires) as client:
        response = await fetched(client, address)
    assert (response.status_code, response.text) == (200, "Hello.")
    assert wires.connected == [(PUBLIC if hosts else url.host, url.port or 80)]
    assert canary.requests[-1][0] == url.netloc.decode()


async def test_the_host_keeps_its_name_in_the_certificate(tmp_path: Path) -> None:
    serving, trusting = certificate("public.example", tmp_path)
    with website(tls=serving) as site:
        wires = Wires(site.port)
        resolve = Names({"public.example": [[PUBLIC]], "other.example": [[PUBLIC]]})
        async with guarded_client(resolve=resolve, network=wires, authorities=trusting) as client:
            response = await fetched(client, "https://public.example/")
            with pytest.raises(httpx2.ConnectError, match=r"(?i)certificate"):
                await fetched(client, "https://other.example/")
    assert response.text == "Hello."
    assert site.hosts == ["public.example", "other.example"]
    assert wires.connected == [(PUBLIC, 443)] * 2


async def test_a_name_that_changes_between_look_and_connection_gains_nothing(canary: Website) -> None:
    wires = Wires(canary.port)
    resolve = Names({"rebinding.example": [[PUBLIC], ["127.0.0.1"]]})
    async with guarded_client(resolve=resolve, network=wires, headers={"Connection": "close"}) as client:
        first = await fetched(client, "http://rebinding.example/")
        with pytest.raises(AddressRefused):
            await fetched(client, "http://rebinding.example/")
    assert first.status_code == 200
    assert wires.connected == [(PUBLIC, 80)]
    assert resolve.asked == ["rebinding.example"] * 2


INWARDS = [
    *("http://127.0.0.1/", "http://169.254.169.254/latest/meta-data/", "//private.example/", "http://[::1]/"),
    *("http://good.example:22/", "file:///etc/passwd", "http://user:password@good.example/", "http://0x7f.1/", "gopher://x/"),
]  # fmt: skip


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("target", INWARDS)
async def test_no_redirect_leads_inwards(canary: Website, status: int, target: str) -> None:
    canary.pages["/there"] = Page(status=status, headers={"Location": "/on"})
    canary.pages["/on"] = Page(status=status, headers={"Location": target})
    wires = Wires(canary.port)
    async with guarded_client(resolve=names(), network=wires, headers={"Connection": "close"}) as client:
        with pytest.raises(httpx2.RequestError):
            await fetched(client, "http://good.example/there")
    assert wires.connected == [(PUBLIC, 80)] * 2


async def test_redirects_are_followed_when_asked_to_and_only_so_far(canary: Website) -> None:
    for hop in range(5):
        canary.pages[f"/hop{hop}"] = Page(status=302, headers={"Location": f"/hop{hop + 1}"})
    async with guarded_client(resolve=names(), network=Wires(canary.port)) as client:
        alone = await client.get("http://good.example/hop2")
        end = await fetched(client, "http://good.example/hop2")
        with pytest.raises(AddressRefused, match="more than 3 times"):
            await fetched(client, "http://good.example/hop1")
    assert (alone.status_code, end.status_code, end.url.path) == (302, 200, "/hop5")


async def test_credentials_do_not_go_along_to_another_host_and_cookies_are_not_kept(canary: Website) -> None:
    canary.pages["/cross"] = Page(
        status=302, headers={"Location": "http://elsewhere.example/end", "Set-Cookie": "a=b; Domain=example"}
    )
    resolve = names(**{"elsewhere.example": [[PUBLIC]]})
    headers = {"Authorization": "Bearer secret"}
    async with guarded_client(resolve=resolve, network=Wires(canary.port), headers=headers) as client:
        await fetched(client, "http://good.example/cross")
    (_, _, first), (host, path, second) = canary.requests[-2:]
    assert first["authorization"] == "Bearer secret"
    assert (host, path) == ("elsewhere.example", "/end")
    assert "authorization" not in second
    assert "cookie" not in second


async def test_the_proxy_of_the_environment_is_not_used(canary: Website, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with guarded_client(resolve=names(), network=Wires(canary.port)) as client:
        assert (await fetched(client, "http://good.example/")).text == "Hello."


BOMB = gzip.compress(b"\0" * 30_000_000)


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        (Page(body=[b"x" * 100_000] * 60), AnswerTooLarge),
        (Page(body=[BOMB], headers={"Content-Encoding": "gzip"}), AnswerTooLarge),
        (Page(body=[zlib.compress(b"\0" * 30_000_000)], headers={"Content-Encoding": "deflate"}), AnswerTooLarge),
        (Page(body=[b"x"], headers={"Content-Encoding": "br"}), AnswerTooLarge),
        (Page(body=[BOMB], headers={"Content-Encoding": "gzip, gzip"}), AnswerTooLarge),
        (Page(body=[b"not packed"], headers={"Content-Encoding": "gzip"}), httpx2.DecodingError),
        (Page(body=[b"x"] * 100, each_seconds=0.05), httpx2.ReadTimeout),
        (Page(body=[b"x"], each_seconds=1), httpx2.ReadTimeout),
    ],
    ids=["large", "gzip bomb", "deflate bomb", "brotli", "packed twice", "nonsense", "drop by drop", "silent"],
)
async def test_an_answer_may_neither_grow_nor_take_for_ever(
    canary: Website, page: Page, fault: type[Exception]
) -> None:
    canary.pages["/much"] = page
    patience = 0.5 if page.each_seconds else 30
    async with guarded_client(resolve=names(), network=Wires(canary.port), total_seconds=patience) as client:
        with pytest.raises(fault):
            await fetched(client, "http://good.example/much")


async def test_a_packed_answer_of_a_right_size_is_read(canary: Website) -> None:
    canary.pages["/packed"] = Page(body=[gzip.compress(b"word " * 1000)], headers={"Content-Encoding": "gzip"})
    async with guarded_client(resolve=names(), network=Wires(canary.port)) as client:
        assert (await fetched(client, "http://good.example/packed")).text == "word " * 1000
    assert canary.requests[-1][2]["accept-encoding"] == "identity"


def certificate(host: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For a server of this name, and for a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(file)
    return serving, ssl.create_default_context(cafile=file)
