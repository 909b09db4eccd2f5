#pragma once

namespace varve {

/// The faults that the tests plant, each of which breaks one rule of the protocol, to prove that they would find it.
enum class PlantedFault {
    undo_without_fencing,
    a_void_that_does_not_raise_the_epoch,
    a_void_of_any_epoch_is_accepted,
    a_slots_undo_and_finalise_do_not_check_the_transaction,
    a_rows_undo_and_finalise_do_not_check_the_transaction,
    one_id_for_all_attempts,
    a_dirty_reader,
    a_reader_ignores_committed_intents,
    a_snapshot_of_one_round,
    a_snapshot_compares_the_raw_revisions,
    to_build_on_what_is_not_finalised,
    a_commit_without_an_answer_to_every_prepare,
    no_validation,
    validation_before_the_prepares,
    validation_overlooks_intents,
    the_primary_is_not_held,
    the_primarys_epoch_changes_after_the_prepares,
    a_lost_answer_is_taken_for_an_abort,
    no_tombstones,
    a_held_row_is_committed_before_it_says_what_becomes_of_it,
    a_row_that_was_filled_meanwhile_is_released,
    done_before_all_is_finalised,
    a_committed_slot_is_written_again,
    what_a_native_transaction_read_is_not_checked,
    a_command_id_is_looked_up_and_not_written,
    effects_are_lost_where_the_primary_is_the_transactions_own,
    what_is_not_finalised_is_remembered_as_settled,
    what_rests_on_memory_alone_is_not_validated,
    a_command_forgets_the_lock_that_it_is_fenced_by,
    only_a_rows_last_writer_is_recognised,
    a_row_remembers_its_last_writer_only,
    a_row_is_not_fenced_when_its_writer_gives_up,
    a_feed_shows_what_is_undecided,
    a_feed_shows_the_frameworks_own_streams,
    a_checkpoint_moves_after_its_rows,
    a_checkpoint_moves_wherever_it_is,
    a_part_is_taken_for_the_batch,
    a_slot_is_cut_in_two,
    a_batch_that_failed_is_taken_for_done,
    who_finds_the_checkpoint_elsewhere_goes_on_from_its_own_batch,
    a_new_owner_goes_on_from_where_it_was_before,
    a_new_owner_takes_what_lies_at_the_checkpoint_again,
    who_finds_nothing_takes_the_end_for_seen,
    poison_is_skipped,
    a_subscription_is_noted_before_it_is_handed_over,
    a_subscription_begins_at_the_end_with_each_owner,
    a_bell_goes_when_its_slot_is_committed,
    the_other_participants_are_not_put_in_order,
    what_stands_beside_is_not_put_in_order,
    a_sequencer_begins_without_the_last_watermarks,
    watermarks_are_raised_before_the_log,
    a_watermark_is_lowered,
    the_log_is_written_over,
    a_sequencer_that_was_refused_goes_on,
    a_sequencer_does_not_learn_of_new_shards,
    what_is_undecided_is_put_in_order,
    a_build_becomes_live_that_is_behind,
    a_reader_does_not_look_whether_its_build_is_still_live,
    a_build_is_emptied_and_nobody_is_told,
    an_entry_stays_when_its_row_changes,
    a_unique_value_is_given_twice,
    effects_beside_the_events_are_not_put_in_order,
    an_effect_that_failed_is_taken_for_delivered,
    a_stream_goes_on_past_an_effect_that_failed,
    a_reaction_is_not_remembered,
    a_timer_is_set_where_nobody_looks,
    a_bucket_is_closed_without_a_look_into_it,
    a_timer_stays_when_it_fires,
    a_timer_fires_before_its_time,
    a_timer_that_is_cancelled_stays,
    a_timer_that_failed_is_forgotten,
};

#ifdef VARVE_PLANTED_FAULTS
/// Whether the running test has planted it; tests/protocol/planted_faults.h says how.
bool planted(PlantedFault fault);
#else
/// Whether it is planted: never, except in the copy of these sources that the tests compile for themselves.
consteval bool planted(PlantedFault) {
    return false;
}
#endif

}  // namespace varve
