#include "core/planted_faults.h"
#include "transactions/bell.h"
#include "transactions/commit/committer.h"
#include "transactions/ended_writes.h"
#include "transactions/finaliser.h"
#include "transactions/handle.h"

#include <varve/core/error.h>

#include <string>

namespace varve::transactions {
namespace {

/// ConfigError naming the option that cannot work.
Options checked(const Options& options) {
    if (options.lease <= Duration::zero()) {
        throw ConfigError("transactions::Options::lease is " + varve::to_string(options.lease) +
                          "; others would take every transaction for dead at once: give it more than nothing");
    }
    if (options.answer_time_max <= Duration::zero()) {
        throw ConfigError("transactions::Options::answer_time_max is " + varve::to_string(options.answer_time_max) +
                          "; give the store some time to answer in");
    }
    if (options.retention < 2 * options.answer_time_max) {
        throw ConfigError("transactions::Options::retention is " + varve::to_string(options.retention) +
                          ", less than twice answer_time_max, " + varve::to_string(options.answer_time_max) +
                          ": a row could forget who wrote it while the owner still asks. Raise retention");
    }
    return options;
}

}  // namespace

Coordinator::Coordinator(store::ItemStore& store, Runtime runtime, Executor& background, Options options,
                         unsigned bell_shards)
    : store_(store),
      capabilities_(store.capabilities()),
      runtime_(runtime),
      options_(checked(options)),
      bell_shards_(bell_shards),
      resolver_(store, runtime, options, metrics_),
      reader_(store, resolver_, runtime),
      finaliser_(std::make_unique<Finaliser>(store, background, runtime, options)),
      ended_writes_(std::make_unique<EndedWrites>()),
      in_doubt_without_memory_(std::make_exception_ptr(
          InDoubtError("whether a transaction has committed is not known: there was no memory left to find out"))) {}

Coordinator::~Coordinator() = default;

bool Coordinator::marks_done() const {
    return !capabilities_.ordered_changes || planted(PlantedFault::a_committed_slot_is_written_again);
}

Verdict Coordinator::resolve(const TransactionHandle& transaction) {
    const Claim claim = claim_of(transaction);
    const Verdict verdict = resolver_.resolve(claim);
    if (verdict == Verdict::committed) announce(claim.tx, {&claim.primary, 1});
    return verdict;
}

void Coordinator::announce(const std::string& tx, std::span<const store::Key> slots) {
    if (!announces() || slots.empty()) return;
    std::vector<store::Write> bells;
    for (const store::Key& slot : slots) bells.push_back(ring(bell_for(tx, slot, bell_shards_)));
    for (const store::WriteAnswer& answer : store_.write(bells)) {
        if (const auto* failure = std::get_if<Failure>(&answer)) raise_certain(*failure);
    }
}

void Coordinator::let_go(std::vector<store::Write> undoes) {
    const std::vector<store::WriteAnswer> answers = store_.write(undoes);
    Finaliser::Work left{.tx = {}, .placed = {}, .finalised = {}, .done = {}};
    for (std::size_t i = 0; i < undoes.size(); ++i) {
        const auto* failure = std::get_if<Failure>(&answers[i]);
        if (failure != nullptr && worth_repeating(*failure))
            left.placed.push_back({.write = std::move(undoes[i]), .tells = false, .leaves_something = false});
    }
    if (!left.placed.empty()) finaliser_->add(std::move(left));
}

std::variant<Conflict, Commit> Coordinator::commit(const Plan& plan, const std::string& tx, Time since,
                                                   SteadyTime until) {
    return Committer{*this, plan, tx, {.since = since, .until = until}}.run();
}

}  // namespace varve::transactions
