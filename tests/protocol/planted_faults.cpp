#include "protocol/planted_faults.h"

namespace varve {
namespace {

std::optional<PlantedFault> active;

}  // namespace

bool planted(PlantedFault fault) {
    return active == fault;
}

namespace protocol {

void plant(std::optional<PlantedFault> fault) {
    active = fault;
}

std::string_view name_of(PlantedFault fault) {
    switch (fault) {  // the compiler says which one is missing
        case PlantedFault::undo_without_fencing: return "undo without fencing";
        case PlantedFault::a_void_that_does_not_raise_the_epoch: return "a void that does not raise the epoch";
        case PlantedFault::a_void_of_any_epoch_is_accepted: return "a void of any epoch is accepted";
        case PlantedFault::a_slots_undo_and_finalise_do_not_check_the_transaction:
            return "a slot's undo and finalise do not check the transaction";
        case PlantedFault::a_rows_undo_and_finalise_do_not_check_the_transaction:
            return "a row's undo and finalise do not check the transaction";
        case PlantedFault::one_id_for_all_attempts: return "one id for all attempts";
        case PlantedFault::a_dirty_reader: return "a dirty reader";
        case PlantedFault::a_reader_ignores_committed_intents: return "a reader ignores committed intents";
        case PlantedFault::a_snapshot_of_one_round: return "a snapshot of one round";
        case PlantedFault::a_snapshot_compares_the_raw_revisions: return "a snapshot compares the raw revisions";
        case PlantedFault::to_build_on_what_is_not_finalised: return "to build on what is not finalised";
        case PlantedFault::a_commit_without_an_answer_to_every_prepare:
            return "a commit without an answer to every prepare";
        case PlantedFault::no_validation: return "no validation";
        case PlantedFault::validation_before_the_prepares: return "validation before the prepares";
        case PlantedFault::validation_overlooks_intents: return "validation overlooks intents";
        case PlantedFault::the_primary_is_not_held: return "the primary is not held";
        case PlantedFault::the_primarys_epoch_changes_after_the_prepares:
            return "the primary's epoch changes after the prepares";
        case PlantedFault::a_lost_answer_is_taken_for_an_abort: return "a lost answer is taken for an abort";
        case PlantedFault::no_tombstones: return "no tombstones";
        case PlantedFault::a_held_row_is_committed_before_it_says_what_becomes_of_it:
            return "a held row is committed before it says what becomes of it";
        case PlantedFault::a_row_that_was_filled_meanwhile_is_released:
            return "a row that was filled meanwhile is released";
        case PlantedFault::done_before_all_is_finalised: return "done before all is finalised";
        case PlantedFault::a_committed_slot_is_written_again: return "a committed slot is written again";
        case PlantedFault::what_a_native_transaction_read_is_not_checked:
            return "what a native transaction read is not checked";
        case PlantedFault::a_command_id_is_looked_up_and_not_written:
            return "a command id is looked up and not written";
        case PlantedFault::effects_are_lost_where_the_primary_is_the_transactions_own:
            return "effects are lost where the primary is the transaction's own";
        case PlantedFault::what_is_not_finalised_is_remembered_as_settled:
            return "what is not finalised is remembered as settled";
        case PlantedFault::what_rests_on_memory_alone_is_not_validated:
            return "what rests on memory alone is not validated";
        case PlantedFault::a_command_forgets_the_lock_that_it_is_fenced_by:
            return "a command forgets the lock that it is fenced by";
        case PlantedFault::only_a_rows_last_writer_is_recognised: return "only a row's last writer is recognised";
        case PlantedFault::a_row_remembers_its_last_writer_only: return "a row remembers its last writer only";
        case PlantedFault::a_row_is_not_fenced_when_its_writer_gives_up:
            return "a row is not fenced when its writer gives up";
        case PlantedFault::a_feed_shows_what_is_undecided: return "a feed shows what is undecided";
        case PlantedFault::a_feed_shows_the_frameworks_own_streams: return "a feed shows the framework's own streams";
        case PlantedFault::a_checkpoint_moves_after_its_rows: return "a checkpoint moves after its rows";
        case PlantedFault::a_checkpoint_moves_wherever_it_is: return "a checkpoint moves wherever it is";
        case PlantedFault::a_part_is_taken_for_the_batch: return "a part is taken for the batch";
        case PlantedFault::a_slot_is_cut_in_two: return "a slot is cut in two";
        case PlantedFault::a_batch_that_failed_is_taken_for_done: return "a batch that failed is taken for done";
        case PlantedFault::who_finds_the_checkpoint_elsewhere_goes_on_from_its_own_batch:
            return "who finds the checkpoint elsewhere goes on from its own batch";
        case PlantedFault::a_new_owner_goes_on_from_where_it_was_before:
            return "a new owner goes on from where it was before";
        case PlantedFault::a_new_owner_takes_what_lies_at_the_checkpoint_again:
            return "a new owner takes what lies at the checkpoint again";
        case PlantedFault::who_finds_nothing_takes_the_end_for_seen: return "who finds nothing takes the end for seen";
        case PlantedFault::poison_is_skipped: return "poison is skipped";
        case PlantedFault::a_subscription_is_noted_before_it_is_handed_over:
            return "a subscription is noted before it is handed over";
        case PlantedFault::a_subscription_begins_at_the_end_with_each_owner:
            return "a subscription begins at the end with each owner";
        case PlantedFault::a_bell_goes_when_its_slot_is_committed: return "a bell goes when its slot is committed";
        case PlantedFault::the_other_participants_are_not_put_in_order:
            return "the other participants are not put in order";
        case PlantedFault::what_stands_beside_is_not_put_in_order: return "what stands beside is not put in order";
        case PlantedFault::a_sequencer_begins_without_the_last_watermarks:
            return "a sequencer begins without the last watermarks";
        case PlantedFault::watermarks_are_raised_before_the_log: return "watermarks are raised before the log";
        case PlantedFault::a_watermark_is_lowered: return "a watermark is lowered";
        case PlantedFault::the_log_is_written_over: return "the log is written over";
        case PlantedFault::a_sequencer_that_was_refused_goes_on: return "a sequencer that was refused goes on";
        case PlantedFault::a_sequencer_does_not_learn_of_new_shards: return "a sequencer does not learn of new shards";
        case PlantedFault::what_is_undecided_is_put_in_order: return "what is undecided is put in order";
        case PlantedFault::a_build_becomes_live_that_is_behind: return "a build becomes live that is behind";
        case PlantedFault::a_reader_does_not_look_whether_its_build_is_still_live:
            return "a reader does not look whether its build is still live";
        case PlantedFault::a_build_is_emptied_and_nobody_is_told: return "a build is emptied and nobody is told";
        case PlantedFault::an_entry_stays_when_its_row_changes: return "an entry stays when its row changes";
        case PlantedFault::a_unique_value_is_given_twice: return "a unique value is given twice";
        case PlantedFault::effects_beside_the_events_are_not_put_in_order:
            return "effects beside the events are not put in order";
        case PlantedFault::an_effect_that_failed_is_taken_for_delivered:
            return "an effect that failed is taken for delivered";
        case PlantedFault::a_reaction_is_not_remembered: return "a reaction is not remembered";
        case PlantedFault::a_timer_is_set_where_nobody_looks: return "a timer is set where nobody looks";
        case PlantedFault::a_bucket_is_closed_without_a_look_into_it:
            return "a bucket is closed without a look into it";
        case PlantedFault::a_timer_stays_when_it_fires: return "a timer stays when it fires";
        case PlantedFault::a_timer_fires_before_its_time: return "a timer fires before its time";
        case PlantedFault::a_timer_that_is_cancelled_stays: return "a timer that is cancelled stays";
        case PlantedFault::a_timer_that_failed_is_forgotten: return "a timer that failed is forgotten";
        case PlantedFault::a_stream_goes_on_past_an_effect_that_failed:
            return "a stream goes on past an effect that failed";
    }
    return "";
}

std::vector<PlantedFault> all_planted_faults() {
    std::vector<PlantedFault> all;
    for (auto fault = PlantedFault{}; !name_of(fault).empty();
         fault = static_cast<PlantedFault>(static_cast<int>(fault) + 1)) {
        all.push_back(fault);
    }
    return all;
}

}  // namespace protocol
}  // namespace varve
