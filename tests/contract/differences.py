"""Tests of the contract that do not hold on versions other than 4.0.7, each with the reason.

Such a test has to fail there, so that this list stays true; docs/contract.md says what Steward makes of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


class Difference(NamedTuple):
    """Tests that do not hold on a version.

    Attributes:
        test: Name of the function.
        reason: What brokers of the version answer in its place.
        parameters: Part of the ids of those of its parameters that do not hold; empty: none holds.
        always: False if it holds now and then, as it depends on who is quicker.
        hangs: Whether it would wait for something that never comes, so that it is not run.
    """

    test: str
    reason: str
    parameters: str = ""
    always: bool = True
    hangs: bool = False


WORDS = "412 as well, without the bundle's name"
ANY_VALUE = "204: the value is kept as it is"
LATER = "a topic's setting shows a moment after the 204; until then the next write of the same topic may undo it"
TOPIC = "/admin/v2/persistent/"
BEFORE_4 = (
    Difference("test_bounds_that_have_changed_are_refused", WORDS),
    Difference("test_values_out_of_range_are_refused", ANY_VALUE, "backlogQuota-body2"),
    Difference("test_a_topic_refuses_values_out_of_range_as_a_namespace_does", ANY_VALUE, "retention-params0"),
    Difference("test_a_topic_refuses_values_out_of_range_as_a_namespace_does", ANY_VALUE, "backlogQuota-params1"),
    Difference("test_retention_is_kept_and_deleted", LATER, TOPIC, always=False),
    Difference("test_what_a_quota_leaves_out_is_zero", LATER, TOPIC, always=False),
    Difference("test_a_topic_quota_stays_under_the_topic_retention", LATER, always=False),
    Difference("test_the_two_quotas_are_set_and_removed_apart", LATER, TOPIC, always=False),
    Difference("test_a_topic_gets_its_ttl_by_the_query", LATER, always=False),
    Difference("test_persistence_is_set_and_removed_whole", LATER, TOPIC, always=False),
    Difference("test_metrics_are_open_to_all_and_want_a_slash", "the text is sent without the format's version"),
)

FEWER = "422 as well, in other words"
NO_LONGEST_DELAY = "there is no `maxDeliveryDelayInMillis`: it is taken, and left out"
BEFORE_3_3 = (
    Difference("test_delayed_delivery_is_set_and_removed_whole", NO_LONGEST_DELAY),
    Difference("test_what_steward_sends_is_what_it_reads", NO_LONGEST_DELAY),
    Difference("test_what_delayed_delivery_leaves_out_is_off", NO_LONGEST_DELAY),
    Difference("test_a_lower_number_is_refused", FEWER),
)

ANEW, BY_SCOPE = "test_setting_a_policy_anew_unloads_by_its_scope", "without a scope all that match are unloaded"
INDEX_OF_SUBSCRIPTIONS = "the size of the delayed index is told of each subscription besides"
NO_RATES = "what dispatch rates hold back has no series"
OF_3 = (
    *BEFORE_4,
    Difference(ANEW, BY_SCOPE, "no scope"),
    Difference("test_every_sample_has_the_labels_of_its_series", INDEX_OF_SUBSCRIPTIONS),
    Difference("test_every_series_that_is_read_is_told_but_for_known_ones", NO_RATES),
)

MOVED = "the test begins by a move, and an unload's `destinationBroker` is ignored"
NO_POSITIONS = "404, in HTML: there is no `topicHashPositions`, and no `specified_positions_divide`"
NO_RAISE = "404, in HTML: the number of coordinators cannot be raised"
NO_DELETED = "without `deleted` among the figures of a partitioned topic"
NO_SCOPE = "there is no scope, and by default nothing is unloaded"
NO_BROKER_ID = "the cluster has to be named where brokers are listed, and the leader is told by its address alone"
NO_TOPIC = "404 as well, without the topic's name"
OTHER_WORDS = "404 as well, in other words"
OTHER_SERIES = "metadata operations, states of threads and pools after a collection have no series"
OF_FIRST = "412 now and then, which names the topic's first partition"
ANY_BROKER = "whoever the leader likes"
OF_A_RANGE = "test_a_destination_goes_to_whichever_bundle_of_its_range_is_loaded_first"
BEFORE_3 = (
    Difference("test_an_unload_goes_by_the_leader_which_keeps_the_destination", MOVED, hangs=True),
    Difference("test_an_unload_without_destination_goes_straight_to_the_owner", MOVED, hangs=True),
    Difference("test_the_present_owner_may_be_the_destination", MOVED, hangs=True),
    Difference("test_the_halves_stay_with_the_owner_unless_unloaded", MOVED, hangs=True),
    Difference("test_coordinators_move_with_their_bundles", MOVED, hangs=True),
    Difference("test_a_killed_broker_is_believed_in_until_its_session_ends", MOVED, hangs=True),
    Difference("test_the_last_destination_named_wins", ANY_BROKER, always=False),
    Difference(OF_A_RANGE, ANY_BROKER, always=False),
    Difference("test_writes_that_make_no_sense_are_refused", "204: it is ignored", "destinationBroker"),
    Difference("test_writes_that_make_no_sense_are_refused", OTHER_WORDS, "public/nothing"),
    Difference("test_writes_that_make_no_sense_are_refused", "500, in HTML", "rubbish/unload"),
    Difference("test_writes_that_make_no_sense_are_refused", NO_POSITIONS, "splitAlgorithmName"),
    Difference("test_splitting_at_given_positions_cuts_there", NO_POSITIONS),
    Difference(
        "test_splitting_hardly_anything_by_topics_succeeds_and_does_nothing",
        "204, and an empty half is cut off",
        "topic_count_equally_divide",
    ),
    Difference(
        "test_splitting_hardly_anything_by_topics_succeeds_and_does_nothing", NO_POSITIONS, "specified_positions"
    ),
    Difference("test_which_reading_calls_load_a_bundle", NO_POSITIONS, "topicHashPositions"),
    Difference("test_an_unowned_bundle_has_no_positions_to_tell", NO_POSITIONS),
    Difference("test_a_system_bundle_tells_its_coordinators_and_can_be_split", NO_POSITIONS),
    Difference("test_positions_in_a_namespace_that_is_not_there_are_refused", NO_POSITIONS),
    Difference("test_hash_positions_are_the_crc32_of_the_full_names", NO_POSITIONS),
    Difference("test_what_is_not_there_is_refused_in_words", NO_POSITIONS, "topicHashPositions"),
    Difference("test_what_is_not_there_is_refused_in_words", "404, in HTML", "ownedNamespaces"),
    Difference("test_asking_where_the_coordinators_are_loads_them_all", "there is no list of coordinators", hangs=True),
    Difference("test_a_number_that_is_not_higher_is_refused", NO_RAISE),
    Difference("test_their_number_is_raised", NO_RAISE),
    Difference("test_what_steward_sends_as_a_number_is_what_it_reads", NO_RAISE),
    Difference("test_the_same_number_changes_nothing", "409: it has to be more"),
    Difference("test_a_topic_without_partitions_gets_none", "409 as well, without the topic's name"),
    Difference("test_partitioned_stats_hold_every_partition_unless_told_not_to", NO_DELETED),
    Difference("test_a_topic_without_partitions_has_none", NO_DELETED),
    Difference("test_topics_are_listed_by_full_name", NO_DELETED),
    Difference("test_facts_that_every_fresh_cluster_states", NO_DELETED, "transaction_coordinator_assign"),
    Difference("test_facts_that_every_fresh_cluster_states", "topics of Pulsar's own are listed", "pulsar/system-"),
    Difference(
        "test_facts_that_every_fresh_cluster_states", "topics of Pulsar's own are listed", "pulsar/system/partitioned"
    ),
    Difference("test_every_broker_lists_all_brokers", NO_BROKER_ID, "2.10.4-]"),
    Difference("test_all_brokers_name_the_same_leader", NO_BROKER_ID),
    Difference("test_unknown_paths_get_the_web_servers_page", NO_BROKER_ID, "POST"),
    Difference("test_isolation_policies_are_missing_then_empty", "brokers are told without the policy's name"),
    Difference("test_what_steward_sets_unloads_nothing_and_is_what_it_reads", "the scope is not kept, nor told"),
    Difference(ANEW, NO_SCOPE, "all that match"),
    Difference(ANEW, NO_SCOPE, "other brokers"),
    Difference("test_the_load_report_has_its_figures_in_their_places", "without `startTimestamp` and load manager"),
    Difference("test_topic_stats_hold_what_broker_stats_leave_out", "without quotas in force and the owner"),
    Difference("test_every_series_that_is_read_is_told_but_for_known_ones", OTHER_SERIES),
    Difference("test_labels_that_checks_look_into_have_these_values", OTHER_SERIES, "jvm_threads_state"),
    Difference("test_labels_that_checks_look_into_have_these_values", OTHER_SERIES, "pulsar_metadata_store_ops"),
    Difference("test_labels_that_checks_look_into_have_these_values", OTHER_SERIES, "jvm_memory_pool_collection"),
    Difference("test_a_topic_that_is_not_there_is_not_found_at_its_owner", NO_TOPIC),
    Difference("test_a_topic_that_is_not_there_takes_no_setting", NO_TOPIC),
    Difference("test_an_unset_policy_is_an_empty_answer", "204 and nothing"),
    Difference("test_one_that_is_not_there_is_not_found", "404 as well, without the names"),
    Difference("test_a_topic_does_not_tell_its_namespaces_settings_as_its_own", OF_FIRST, always=False),
    Difference("test_a_topic_refuses_values_out_of_range_as_a_namespace_does", OF_FIRST, "params2", always=False),
    Difference("test_a_topic_refuses_values_out_of_range_as_a_namespace_does", OF_FIRST, "params3", always=False),
)

OF_4_2 = (
    Difference(OF_A_RANGE, "the namespace counts as well (apache/pulsar#25518)", always=False),
    Difference("test_persistence_is_set_and_removed_whole", "a rate that is left out is -1"),
)
NOTHING_ADDED = "a redirect to the owner has the query as it was, without `authoritative`"
MORE_BUNDLES = "`pulsar/system` has 64 bundles, in which coordinators are alone"

DIFFERENCES: dict[str, tuple[Difference, ...]] = {
    "4.2.4": OF_4_2,
    "5.0.1": (
        *OF_4_2,
        Difference("test_a_first_lookup_goes_by_the_leader_to_the_owner_to_be", "`listenerName=internal` is added"),
        Difference("test_an_unload_goes_by_the_leader_which_keeps_the_destination", NOTHING_ADDED),
        Difference("test_an_unload_without_destination_goes_straight_to_the_owner", NOTHING_ADDED),
        Difference("test_the_owner_answers_and_the_others_send_on", NOTHING_ADDED, "internalStats"),
        Difference("test_asking_where_the_coordinators_are_loads_them_all", MORE_BUNDLES),
        Difference("test_a_system_bundle_tells_its_coordinators_and_can_be_split", MORE_BUNDLES),
    ),
    "3.3.2": (*OF_3, Difference("test_delayed_delivery_is_set_and_removed_whole", LATER, TOPIC, always=False)),
    "3.0.7": (*OF_3, *BEFORE_3_3),
    "2.10.4": (*BEFORE_4, *BEFORE_3, *BEFORE_3_3),
}


def mark_differences(items: Iterable[pytest.Item]) -> None:
    """Marks what has to fail on the version that a test is run against."""
    for item in items:
        for each in DIFFERENCES.get(version_of(item), ()):
            if item.name.startswith(f"{each.test}[") and each.parameters in item.name:
                item.add_marker(pytest.mark.xfail(reason=each.reason, strict=each.always, run=not each.hangs))


def version_of(item: pytest.Item) -> str:
    """Version of the brokers that a test is run against, ``simulator``, or nothing where it is run against neither."""
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("target", "")) if callspec else ""
