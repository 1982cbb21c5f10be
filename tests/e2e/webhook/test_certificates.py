"""Certificates of the webhook's own CA: made, renewed, repaired, without a refused call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kube.calls.api import ApiClient, InvalidError, NotFoundError, connect
from kube.kinds import SECRETS
from local_cluster.api import Cluster
from tests.e2e.webhook import rotating
from tests.e2e.webhook.installation import NAMESPACE
from tests.e2e.webhook.rotating import NAME, SECRET, VALIDATING, Replica, Rotation
from webhook.certificates.authority import is_signed_by, new_authority, new_certificate, pem_of
from webhook.certificates.rotation import CaState

LIFE = timedelta(days=rotating.DAYS)


@pytest.fixture(scope="module")
def replicas(server: Cluster) -> Iterator[tuple[Replica, ...]]:
    """Both start at the same moment, where there is no Secret."""
    rotating.install(server)
    found = (Replica(server, NAME), Replica(server, NAME))
    server.apply(rotating.registration(*found))
    for replica in found:
        replica.start()
    try:
        for replica in found:
            replica.wait_ready()
        yield found
    finally:
        for replica in found:
            replica.kill()
        rotating.uninstall(server)


@pytest.fixture
async def admin(server: Cluster) -> AsyncIterator[ApiClient]:
    async with connect(server.kubeconfig) as client:
        yield client


@pytest.fixture
async def rotation(server: Cluster, admin: ApiClient, replicas: tuple[Replica, ...]) -> Rotation:
    found = Rotation(server, admin, replicas)
    await found.until("both replicas are asked", found.is_asked)
    return found


async def test_replicas_that_start_together_agree(rotation: Rotation) -> None:
    data = await rotation.data()

    assert await rotation.everybody_shows(data["tls.crt"])
    assert await rotation.bundles() == [data["ca.crt"]] * 2
    assert len(CaState.of(data).trusted) == 1


async def test_whom_to_trust_is_told_without_the_keys(rotation: Rotation) -> None:
    async def is_told() -> bool:
        return await rotation.published() == (await rotation.data())["ca.crt"].decode()

    await rotation.until("the ConfigMap says it", is_told)


async def test_certificate_and_authority_are_renewed_without_a_refused_call(
    rotation: Rotation,
) -> None:
    before = await rotation.data()
    now = datetime.now(UTC)

    async with rotation.called_all_the_time():
        # As if two thirds of the certificate's life were over, but not those of its authority's.
        state = CaState.of(before)
        assert state.signer is not None
        names = (rotation.replicas[0].host,)
        late = replace(state, served=new_certificate(state.signer, names, LIFE, now - 0.7 * LIFE))
        await rotation.write(late.data())

        async def is_renewed() -> bool:
            found = (await rotation.data())["tls.crt"]
            return found != late.data()["tls.crt"] and await rotation.everybody_shows(found)

        await rotation.until("the certificate is renewed", is_renewed)
        renewed = CaState.of(await rotation.data())
        assert renewed.trusted == state.trusted

        # As if an authority had been made long ago, and never been put to use.
        ended = new_authority(LIFE, now - 3.5 * LIFE)
        trusted = (*renewed.trusted, ended.certificate)
        await rotation.write(replace(renewed, trusted=trusted, signer=ended).data())

        async def is_replaced() -> bool:
            data = await rotation.data()
            state = CaState.of(data)
            return (
                len(state.trusted) == 3
                and state.signer is not None
                and state.signer.certificate == state.trusted[-1]
                and state.served is not None
                and is_signed_by(state.served.certificate, state.trusted[-1])
                and await rotation.everybody_shows(data["tls.crt"])
            )

        await rotation.until("a certificate of the new authority is shown", is_replaced)
        replaced = CaState.of(await rotation.data())
        assert await rotation.bundles() == [pem_of(replaced.trusted)] * 2
        assert set(trusted) < set(replaced.trusted)


async def test_a_registration_without_a_bundle_is_repaired(rotation: Rotation) -> None:
    """`kubectl apply` leaves a caBundle alone that it does not know; `replace` does not."""
    path = VALIDATING.at(NAME)
    stored = await rotation.admin.get(path)
    applied = rotating.registration(*rotation.replicas)
    await rotation.admin.replace(path, {**applied, "metadata": stored["metadata"]})

    async def is_repaired() -> bool:
        data = await rotation.data()
        return await rotation.bundles() == [data["ca.crt"]] * 2

    # The API server may ask by what it knew before.
    await rotation.until("the bundles are there again", is_repaired)
    await rotation.until("both replicas are asked again", rotation.is_asked)


async def test_a_secret_that_is_lost_is_made_anew_without_a_refused_call(
    rotation: Rotation,
) -> None:
    before = await rotation.data()

    async with rotation.called_all_the_time():
        await rotation.admin.delete(SECRETS.at(SECRET, NAMESPACE))
        await rotation.until("another certificate is shown", lambda: _is_another(rotation, before))

    state = CaState.of(await rotation.data())
    assert state.signer not in CaState.of(before).trusted


async def test_a_secret_of_no_use_is_made_anew_without_a_refused_call(rotation: Rotation) -> None:
    before = await rotation.data()

    async with rotation.called_all_the_time():
        await rotation.write(dict.fromkeys(before, b"-----BEGIN CERTIFICATE-----\nAAAA"))
        await rotation.until("another certificate is shown", lambda: _is_another(rotation, before))

    log = "".join(replica.log.read_text() for replica in rotation.replicas)
    assert "has no usable CA" in log
    assert "Traceback" not in log


async def test_its_token_is_good_for_its_own_bundle_and_nothing_else(rotation: Rotation) -> None:
    kubeconfig = rotation.cluster.service_account_kubeconfig(NAME, namespace=NAMESPACE)
    elsewhere = {"clientConfig": {"url": "https://10.0.0.1:1/"}}
    found = await rotation.admin.get(VALIDATING.at(NAME))
    entries = [{**entry, **elsewhere} for entry in found["webhooks"]]
    token = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": SECRET,
            "namespace": NAMESPACE,
            "annotations": {"kubernetes.io/service-account.name": "scheduler-plugin"},
        },
    }
    async with connect(kubeconfig) as client:
        with pytest.raises(InvalidError, match=f"nothing of .*{NAME} but its caBundle"):
            await client.merge_patch(VALIDATING.at(NAME), {"webhooks": entries})
        with pytest.raises(InvalidError, match="may create no Secret but"):
            await client.create(SECRETS, token)


async def _is_another(rotation: Rotation, before: dict[str, bytes]) -> bool:
    try:
        data = await rotation.data()
    except NotFoundError:
        return False
    served = CaState.of(data).served
    if served is None or served == CaState.of(before).served:
        return False
    return await rotation.everybody_shows(data["tls.crt"])
