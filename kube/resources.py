"""Resources of the API, and their paths."""

from dataclasses import dataclass
from urllib.parse import quote

from kube.objects import JsonObject


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """One object of one resource, or a subresource of it such as `status`."""

    resource: "Resource"
    name: str
    namespace: str = ""
    subresource: str = ""

    @property
    def url_path(self) -> str:
        path = f"{self.resource.collection_path(self.namespace)}/{quote(self.name, safe='')}"
        return f"{path}/{self.subresource}" if self.subresource else path

    def __str__(self) -> str:
        return self.url_path


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of one resource that a list or a store selects; all objects by default."""

    resource: "Resource"
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    @property
    def url_path(self) -> str:
        return self.resource.collection_path(self.namespace)

    @property
    def parameters(self) -> dict[str, str]:
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {key: text for key, text in selectors.items() if text}

    def __str__(self) -> str:
        return "&".join([self.url_path, *self.parameters.values()])


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object as the API serves it; `group` is "" for the core group."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection_path(self, namespace: str = "") -> str:
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            return f"{root}/namespaces/{quote(namespace, safe='')}/{self.plural}"
        return f"{root}/{self.plural}"

    def at(self, name: str, namespace: str = "", subresource: str = "") -> ObjectPath:
        if self.namespaced != bool(namespace):
            scope = "namespaced" if self.namespaced else "cluster-scoped"
            raise ValueError(f"{self.plural} are {scope}, the namespace is {namespace!r}")
        return ObjectPath(self, name, namespace, subresource)

    def path_of(self, body: JsonObject, subresource: str = "") -> ObjectPath:
        metadata = body["metadata"]
        return self.at(metadata["name"], metadata.get("namespace", ""), subresource)

    def select(
        self, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> Selection:
        return Selection(self, namespace, label_selector, field_selector)
