"""Page views, enriched with the user's profile and latest search.

Reads `page-views`, `searches` and the table `profiles`, whose keys are users; writes to `enriched-views`. A view gets
the profile that its user has at that time, and a search of the five seconds before it. A view without a search is
written when it is certain that none can arrive any more.
"""

from datetime import timedelta
from typing import Any

from kaspar.streams import JoinWindows, StreamsBuilder, Topology, serdes

Json = dict[str, Any]

BEFORE_A_VIEW = JoinWindows.of_time_difference(timedelta(seconds=5)).after(0)


def with_profile(view: Json, profile: Json | None) -> Json:
    known = profile or {}
    return {"page": view["page"], "name": known.get("name"), "city": known.get("city")}


def with_search(view: Json, search: Json | None) -> Json:
    return {**view, "searched_for": search["terms"] if search else None}


def topology() -> Topology:
    builder = StreamsBuilder()
    json = serdes.json()
    views = builder.stream("page-views", value_serde=json)
    searches = builder.stream("searches", value_serde=json)
    profiles = builder.table("profiles", "profiles", value_serde=json)
    views_of_users = views.left_join(profiles, with_profile)
    enriched = views_of_users.left_join(searches, with_search, BEFORE_A_VIEW, value_serde=json, other_value_serde=json)
    enriched.to("enriched-views", value_serde=json)
    return builder.build()
