#include "attempt.h"
#include "finaliser.h"
#include "handle.h"
#include "patient_store.h"

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
    if (options.retention < options.answer_time_max) {
        throw ConfigError("transactions::Options::retention is " + varve::to_string(options.retention) +
                          ", less than answer_time_max, " + varve::to_string(options.answer_time_max) +
                          ": a write that is repeated so long could find its tombstone gone. Raise retention");
    }
    return options;
}

}  // namespace

Coordinator::Coordinator(store::ItemStore& store, Runtime runtime, Executor& background, Options options)
    : patient_(std::make_unique<PatientStore>(store, runtime, checked(options).answer_time_max)),
      store_(*patient_),
      capabilities_(store.capabilities()),
      runtime_(runtime),
      options_(options),
      resolver_(store_, runtime, options, metrics_),
      reader_(store_, resolver_, runtime),
      finaliser_(std::make_unique<Finaliser>(store_, background, runtime, options.answer_time_max)) {}

Coordinator::~Coordinator() = default;

bool Coordinator::is_on(const store::ItemStore& store) const {
    return &patient_->inner() == &store;
}

Verdict Coordinator::resolve(std::string_view transaction) {
    return resolver_.end(claim_of_handle(transaction));
}

void Coordinator::let_go(std::vector<store::Write> undoes) {
    // At once if it can be: whoever waits for them, be it the next attempt of the same command, need not any longer.
    const std::vector<store::WriteAnswer> answers = store_.write(undoes);
    std::vector<store::Write> left;
    for (std::size_t i = 0; i < undoes.size(); ++i) {
        const auto* failure = std::get_if<Failure>(&answers[i]);
        if (failure != nullptr && worth_repeating(*failure)) left.push_back(std::move(undoes[i]));
    }
    if (left.empty()) return;
    const std::vector<bool> tells(left.size(), false);
    finaliser_->add({.writes = std::move(left), .tells = tells, .finalised = {}, .done = {}});
}

std::variant<Commit, Conflict> Coordinator::commit(const Plan& plan, const std::string& tx, Time since) {
    return Attempt{*this, plan, tx, since}.run();
}

}  // namespace varve::transactions
