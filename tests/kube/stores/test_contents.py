"""The contents of a store: objects in, changes out."""

from __future__ import annotations

from collections.abc import Iterable

from kube.objects import JsonObject, ObjectKey
from kube.stores.changes import Added, Change, Deleted, Modified, Skipped
from kube.stores.contents import Contents
from tests.kube.builders import View, a_view, an_object, project

A = ObjectKey("ns", "a")
B = ObjectKey("ns", "b")


def contents_with(*objects: JsonObject, version: int) -> Contents[View]:
    contents = Contents(project, {"data": lambda view: [view.data]})
    relist(contents, objects, version)
    return contents


def relist(
    contents: Contents[View], objects: Iterable[JsonObject], version: int
) -> list[Change[View] | Skipped]:
    seen: set[ObjectKey] = set()
    facts = [fact for obj in objects for fact in contents.list_item(obj, seen)]
    return [*facts, *contents.finish_list(seen, version)]


def test_first_list_adds_everything_and_sets_the_position() -> None:
    contents = Contents(project)

    facts = relist(contents, [an_object("a", 1), an_object("b", 3)], 5)

    assert facts == [Added(A, a_view("a")), Added(B, a_view("b"))]
    assert contents.position == 5
    assert list(contents) == [a_view("a"), a_view("b")]


def test_watch_events_add_modify_and_delete() -> None:
    contents = contents_with(version=5)

    facts = [
        *contents.observe(an_object("a", 6, "x")),
        *contents.observe(an_object("a", 7, "y")),
        *contents.observe(an_object("a", 8, "y"), is_gone=True),
    ]

    assert facts == [
        Added(A, a_view("a", "x")),
        Modified(A, a_view("a", "x"), a_view("a", "y")),
        Deleted(A, a_view("a", "y")),
    ]
    assert contents.position == 8
    assert len(contents) == 0


def test_second_list_tells_the_difference_only() -> None:
    contents = contents_with(an_object("a", 1), an_object("b", 2), an_object("c", 3), version=5)

    facts = relist(contents, [an_object("b", 2), an_object("c", 7, "new"), an_object("d", 8)], 9)

    assert facts == [
        Modified(ObjectKey("ns", "c"), a_view("c"), a_view("c", "new")),
        Added(ObjectKey("ns", "d"), a_view("d")),
        Deleted(A, a_view("a")),
    ]


def test_new_version_with_the_same_value_is_no_change() -> None:
    contents = contents_with(an_object("a", 1, "x"), version=5)
    before = contents.get(A)

    facts = contents.observe(an_object("a", 6, "x"))

    assert facts == ()
    assert contents.get(A) is before
    assert contents.position == 6


def test_object_made_anew_under_its_old_name_is_deleted_and_added() -> None:
    contents = contents_with(an_object("a", 1, uid="one"), version=5)

    facts = contents.observe(an_object("a", 7, uid="two"))

    assert facts == (Deleted(A, a_view("a")), Added(A, a_view("a")))
    assert contents.get(A) == a_view("a")


def test_events_that_come_again_change_nothing() -> None:
    contents = contents_with(version=5)
    contents.observe(an_object("a", 6, "x"))
    contents.observe(an_object("a", 7, "x"), is_gone=True)

    assert contents.observe(an_object("a", 6, "x")) == ()
    assert contents.observe(an_object("a", 7, "x"), is_gone=True) == ()
    assert len(contents) == 0


def test_own_write_enters_at_once_and_its_event_is_not_told_again() -> None:
    contents = contents_with(an_object("a", 1, "x"), version=5)

    noted = contents.note(an_object("a", 8, "y"))

    assert noted == (Modified(A, a_view("a", "x"), a_view("a", "y")),)
    assert contents.position == 5
    assert contents.observe(an_object("a", 7, "older")) == ()
    assert contents.observe(an_object("a", 8, "y")) == ()
    assert contents.get(A) == a_view("a", "y")


def test_answer_that_comes_after_the_watch_is_ignored() -> None:
    contents = contents_with(an_object("a", 1, "x"), version=5)
    contents.observe(an_object("a", 8, "y"))
    contents.observe(an_object("a", 9, "y"), is_gone=True)

    assert contents.note(an_object("a", 8, "y")) == ()
    assert contents.get(A) is None


def test_list_that_is_older_than_an_own_write_does_not_take_it_back() -> None:
    contents = contents_with(version=5)
    contents.note(an_object("new", 9, "x"))

    facts = relist(contents, [], 7)

    assert facts == []
    assert contents.get(ObjectKey("ns", "new")) == a_view("new", "x")


def test_deletion_that_is_older_than_an_own_write_does_not_delete_it() -> None:
    contents = contents_with(an_object("a", 1, uid="one"), version=5)
    contents.note(an_object("a", 9, uid="two"))

    assert contents.observe(an_object("a", 7, uid="one"), is_gone=True) == ()
    assert contents.get(A) == a_view("a")


def test_list_beside_the_watch_does_not_bring_back_what_the_watch_saw_deleted() -> None:
    contents = contents_with(an_object("a", 1), version=5)
    contents.observe(an_object("a", 8), is_gone=True)
    seen: set[ObjectKey] = set()

    facts = [
        *contents.list_item(an_object("a", 1), seen, beside_watch=True),
        *contents.list_item(an_object("b", 9), seen, beside_watch=True),
        *contents.finish_list(seen, 10),
    ]

    assert facts == [Added(B, a_view("b"))]
    assert contents.position == 10


def test_object_projected_to_none_leaves_and_no_older_version_brings_it_back() -> None:
    contents = contents_with(an_object("a", 1, "x"), version=5)

    facts = contents.note(an_object("a", 9, "hidden"))

    assert facts == (Deleted(A, a_view("a", "x")),)
    assert contents.observe(an_object("a", 7, "older")) == ()
    assert contents.observe(an_object("a", 9, "hidden")) == ()
    assert contents.observe(an_object("a", 10, "back")) == (Added(A, a_view("a", "back")),)


def test_odd_object_is_skipped_and_the_others_are_not() -> None:
    contents = contents_with(an_object("a", 1, "x"), version=5)

    odd, well = contents.observe(an_object("a", 6, "odd")), contents.observe(an_object("b", 7))

    assert isinstance(odd[0], Skipped)
    assert odd[0].key == A
    assert well == (Added(B, a_view("b")),)
    assert contents.get(A) == a_view("a", "x")
    assert contents.position == 7


def test_odd_object_of_a_list_keeps_its_place() -> None:
    contents = contents_with(an_object("a", 1, "x"), version=5)

    facts = relist(contents, [an_object("a", 6, "odd"), an_object("b", 7)], 8)

    assert [type(fact) for fact in facts] == [Skipped, Added]
    assert contents.get(A) == a_view("a", "x")


def test_odd_object_that_took_the_place_of_another_ends_the_other() -> None:
    contents = contents_with(an_object("a", 1, "x", uid="one"), version=5)

    facts = contents.observe(an_object("a", 6, "odd", uid="two"))

    assert [type(fact) for fact in facts] == [Deleted, Skipped]
    assert contents.get(A) is None


def test_deletion_of_an_odd_version_still_deletes() -> None:
    contents = contents_with(an_object("a", 1, "x"), version=5)

    assert contents.observe(an_object("a", 6, "odd"), is_gone=True) == (
        Deleted(A, a_view("a", "x")),
    )


def test_object_without_metadata_is_skipped() -> None:
    contents = contents_with(version=5)

    assert isinstance(contents.observe({"kind": "ConfigMap"})[0], Skipped)
    assert isinstance(contents.observe({"metadata": {"name": "a"}}, is_gone=True)[0], Skipped)
    assert isinstance(contents.list_item({"metadata": None}, set())[0], Skipped)


def test_index_function_that_raises_skips_the_object_and_leaves_no_trace() -> None:
    contents = Contents(project, {"data": lambda view: [str(1 // len(view.data))]})

    facts = contents.observe(an_object("a", 1, ""))

    assert isinstance(facts[0], Skipped)
    assert len(contents) == 0


def test_index_finds_by_the_value_that_is_there_now() -> None:
    contents = contents_with(an_object("a", 1, "x"), an_object("b", 2, "x"), version=5)

    contents.observe(an_object("a", 6, "y"))

    assert contents.by_index("data", "x") == (a_view("b", "x"),)
    assert contents.by_index("data", "y") == (a_view("a", "y"),)
    contents.observe(an_object("b", 7, "x"), is_gone=True)
    assert contents.by_index("data", "x") == ()


def test_history_that_went_back_is_followed() -> None:
    contents = contents_with(an_object("a", 90, "x"), an_object("b", 95, "x"), version=100)

    contents.rewind()
    facts = relist(contents, [an_object("a", 40, "restored")], 50)

    assert facts == [
        Modified(A, a_view("a", "x"), a_view("a", "restored")),
        Deleted(B, a_view("b", "x")),
    ]
    assert contents.position == 50
    assert contents.observe(an_object("c", 51)) == (Added(ObjectKey("ns", "c"), a_view("c")),)
