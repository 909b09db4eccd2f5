#include "attempt.h"
#include "ended_writes.h"
#include "finaliser.h"
#include "handle.h"

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

Coordinator::Coordinator(store::ItemStore& store, Runtime runtime, Executor& background, Options options)
    : store_(store),
      capabilities_(store.capabilities()),
      runtime_(runtime),
      options_(checked(options)),
      resolver_(store, runtime, options, metrics_),
      reader_(store, resolver_, runtime),
      finaliser_(std::make_unique<Finaliser>(store, background)),
      ended_writes_(std::make_unique<EndedWrites>()),
      in_doubt_without_memory_(std::make_exception_ptr(
          InDoubtError("whether a transaction has committed is not known: there was no memory left to find out"))) {}

Coordinator::~Coordinator() = default;

Verdict Coordinator::resolve(std::string_view transaction) {
    return resolver_.end(claim_of_handle(transaction));
}

std::variant<Commit, Conflict> Coordinator::commit(const Plan& plan, const std::string& tx, Time since) {
    return Attempt{*this, plan, tx, since}.run();
}

}  // namespace varve::transactions
