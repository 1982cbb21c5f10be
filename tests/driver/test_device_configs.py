"""Device configs: what is wrong with one, and what comes of several."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import Problem
from driver.device_configs import NOTHING_ASKED, DeviceConfig, merged, read
from driver.environment_rules import built_in_refusal
from driver.models import device_config_problems
from tests.schema_objects import GARBAGE

HEAD = {"apiVersion": "moorage.dev/v1alpha1", "kind": "DeviceConfig"}
ALL = {
    "env": {"FPS": "25", "LENS": ""},
    "permissions": "rw",
    "mode": "0640",
    "uid": 1000,
    "gid": 0,
    "certificates": "/etc/camera",
}
GOOD = {
    **{name: st.just(word) for name, word in HEAD.items()},
    "env": st.dictionaries(
        st.from_regex(r"[_A-Za-z][_A-Za-z0-9]{0,4}", fullmatch=True).filter(
            lambda name: not built_in_refusal(name)
        ),
        st.text(max_size=5),
    ),
    "permissions": st.sampled_from(["r", "w", "m", "rw", "rm", "wm", "rwm"]),
    "mode": st.from_regex(r"0[0-7]{3}", fullmatch=True),
    "uid": st.integers(0, 2**32 - 2),
    "gid": st.integers(0, 2**32 - 2),
    "certificates": st.from_regex(r"(/[a-z]{1,3}){1,3}", fullmatch=True),
}
ODD = st.sampled_from([*GARBAGE, None, "wr", "660", "0660\n", "/a/../b", "/\0", 2**32, {"A": 1}])
ODD_ENV = st.dictionaries(
    st.sampled_from(["A", "1", "MOORAGE_A", "LD_PRELOAD", "A B", "é", ""]),
    st.sampled_from(["x", "\0", 1, None]),
)
MIXED = {name: st.one_of(good, ODD) for name, good in GOOD.items()}
MIXED |= {"env": st.one_of(GOOD["env"], ODD, ODD_ENV), "other": ODD}
CONFIGS = st.builds(
    DeviceConfig,
    env=st.dictionaries(st.sampled_from("AB"), st.sampled_from("xy")).map(
        lambda env: tuple(sorted(env.items()))
    ),
    permissions=st.sampled_from(["", "r", "rw"]),
    mode=st.sampled_from([None, 0, 0o660]),
    uid=st.sampled_from([None, 0, 7]),
    gid=st.sampled_from([None, 0, 7]),
    certificates=st.sampled_from(["", "/a"]),
)


def test_all_fields_are_read() -> None:
    assert read({**HEAD, **ALL}) == DeviceConfig(
        env=(("FPS", "25"), ("LENS", "")),
        permissions="rw",
        mode=0o640,
        uid=1000,
        gid=0,
        certificates="/etc/camera",
    )


@pytest.mark.parametrize("fields", [{}, dict.fromkeys(ALL), {"env": {}}])
def test_absent_is_null_is_nothing(fields: dict[str, Any]) -> None:
    assert read({**HEAD, **fields}) == NOTHING_ASKED


@pytest.mark.parametrize(
    ("fields", "path", "sentence"),
    [
        ({"apiVersion": "moorage.dev/v1"}, "apiVersion", "Input should be 'moorage.dev/v1alpha1'."),
        ({"kind": "Config"}, "kind", "Input should be 'DeviceConfig'."),
        ({"envs": {}}, "envs", "Extra inputs are not permitted."),
        ({"env": {"A": 1}}, "env[A]", "Input should be a valid string."),
        (
            {"env": {"A-B": "1"}},
            "env[A-B]",
            "A variable's name has letters, digits and _, and does not begin with a digit.",
        ),
        (
            {"env": {"MOORAGE_INSTANCE": "1"}},
            "env[MOORAGE_INSTANCE]",
            "Variables MOORAGE_* are denied: they are Moorage's own.",
        ),
        (
            {"env": {"LD_PRELOAD": "/x.so"}},
            "env[LD_PRELOAD]",
            "Variables LD_* are denied: they say what the loader and the C library load.",
        ),
        (
            {"env": {"Https_Proxy": "http://10.0.0.1"}},
            "env[Https_Proxy]",
            "Variables HTTPS_PROXY are denied: they say which proxy is asked.",
        ),
        ({"env": {"A": "\0"}}, "env[A]", "A variable's value must not have a NUL byte."),
        ({"env": []}, "env", "Input should be a valid dictionary."),
        ({"permissions": ""}, "permissions", "It must be some of rwm, such as r or rw."),
        ({"permissions": "wr"}, "permissions", "It must be some of rwm, such as r or rw."),
        ({"mode": "0660\n"}, "mode", "It must be a mode in four octal digits, such as 0660."),
        ({"mode": 660}, "mode", "Input should be a valid string."),
        ({"mode": "4755"}, "mode", "It must be a mode in four octal digits, such as 0660."),
        ({"uid": -1}, "uid", "It must be a number from 0 to 4294967294."),
        ({"gid": 2**32 - 1}, "gid", "It must be a number from 0 to 4294967294."),
        ({"gid": True}, "gid", "Input should be a valid integer."),
        (
            {"certificates": "/a/../b"},
            "certificates",
            "It must be an absolute path of a folder, such as /etc/camera.",
        ),
        (
            {"certificates": "/"},
            "certificates",
            "It must be an absolute path of a folder, such as /etc/camera.",
        ),
    ],
)
def test_problem_names_its_field(fields: dict[str, Any], path: str, sentence: str) -> None:
    assert read({**HEAD, **fields}) == (Problem(path, sentence),)


@given(st.one_of(st.fixed_dictionaries({}, optional=MIXED), ODD))
def test_nodes_and_the_webhook_say_the_same(parameters: object) -> None:
    found = read(parameters)

    assert device_config_problems(parameters) == (() if isinstance(found, DeviceConfig) else found)


@given(st.fixed_dictionaries(GOOD))
def test_what_is_right_is_right_for_both(parameters: dict[str, Any]) -> None:
    if "\0" in "".join(parameters["env"].values()):
        parameters["env"] = {}

    assert isinstance(read(parameters), DeviceConfig)
    assert device_config_problems(parameters) == ()


def test_later_one_wins_in_what_it_says() -> None:
    general = DeviceConfig(env=(("A", "1"), ("B", "1")), permissions="rw", uid=7, mode=0o660)
    special = DeviceConfig(env=(("B", "2"),), permissions="r", uid=0)

    assert merged([general, special]) == DeviceConfig(
        env=(("A", "1"), ("B", "2")), permissions="r", uid=0, mode=0o660
    )


@given(st.lists(CONFIGS, max_size=5), st.integers(0, 5))
def test_merging_is_associative_and_each_field_is_of_the_last_that_says_it(
    configs: list[DeviceConfig], cut: int
) -> None:
    whole = merged(configs)

    assert merged([merged(configs[:cut]), merged(configs[cut:])]) == whole
    assert merged([whole, NOTHING_ASKED]) == merged([NOTHING_ASKED, whole]) == whole
    for name in ("mode", "uid", "gid"):
        said = [v for c in configs if (v := getattr(c, name)) is not None]
        assert getattr(whole, name) == (said[-1] if said else None)
    assert dict(whole.env) == {k: v for config in configs for k, v in config.env}
