"""What a store's url says, and what it may not say."""

import pytest

from maitred.address import Address, Site
from maitred.errors import ConfigError


def test_one_server_is_a_host_or_a_socket() -> None:
    assert Site.read("valkey://h:1/2").server == Address(host="h", port=1, database=2)
    assert Site.read("rediss://u:p%40@[::1]").server == Address("", "::1", 6379, True, "u", "p@")
    assert Site.read("unix://:p@/run/a%20b.sock?db=3").server == Address(
        path="/run/a b.sock", password="p", database=3
    )


def test_sentinels_have_a_login_of_their_own() -> None:
    site = Site.read(
        "valkeys+sentinel://u:p@a,b:26380/main/4?sentinel_username=s&sentinel_password=q%26&replicas=1"
    )
    assert (site.kind, site.name, site.replicas) == ("sentinel", "main", 1)
    assert site.server.moved("x", 7) == Address("", "x", 7, True, "u", "p", 4)
    assert site.members == (
        Address("", "a", 26379, True, "s", "q&"),
        Address("", "b", 26380, True, "s", "q&"),
    )


def test_a_cluster_is_known_by_some_of_its_nodes() -> None:
    site = Site.read("redis+cluster://:p@a:7000,[::1],c:7002/0")
    assert (site.kind, site.replicas) == ("cluster", 0)
    assert [(node.host, node.port, node.password) for node in site.members] == [
        ("a", 7000, "p"),
        ("::1", 6379, "p"),
        ("c", 7002, "p"),
    ]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("valkey+ring://h", "is not a known scheme"),
        ("valkey+://h", "is not a known scheme"),
        ("unix+cluster:///a", "is not a known scheme"),
        ("valkey://:s3cret@a,b", r"more than one server is a valkey\+sentinel:// or a valkey\+cluster://"),
        ("valkey+sentinel://:s3cret@a,b", "by which name the sentinels know the primary"),
        ("valkey+sentinel://:s3cret@a,b/main/x", "the database has to be a number"),
        ("valkey+sentinel://:s3cret@a,,b/main", "does not say where the server is"),
        ("valkey+cluster://:s3cret@a/1", "a cluster has the one database 0"),
        ("valkey+cluster://:s3cret@a:70000", "no number from 1 to 65535"),
        ("valkey+cluster://:s3/cret@a", "it is not a url"),
        ("valkey+cluster://:s3cret@[a", "it is not a url"),
        (
            "valkey://h?sentinel_password=s3cret",
            r"\?sentinel_password= is not known here; known are replicas",
        ),
        ("valkey://h?replicas=s3", r"\?replicas= has to be a whole number from 0 to 16"),
    ],
)
def test_a_mistake_is_told_without_the_password(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        Site.read(url)
    assert "s3" not in str(refused.value)
