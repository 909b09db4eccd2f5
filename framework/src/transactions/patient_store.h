#pragma once

#include <varve/core/error.h>
#include <varve/core/retry.h>
#include <varve/store/item_store.h>

namespace varve::transactions {

/// The store as transactions ask it. What is only read is asked again for as long as writes are, if the store does not
/// answer; one lost answer more or less must not end a command. Writes pass: who sent them has to know what each answer
/// was.
class PatientStore final : public store::ItemStore {
  public:
    PatientStore(store::ItemStore& inner, Runtime runtime, Duration answer_time_max)
        : inner_(inner), runtime_(runtime), policy_(RetryPolicy::waiting(answer_time_max)) {}

    const store::ItemStore& inner() const { return inner_; }

    void ensure_table(const store::TableSchema& schema) override {
        ask([&] { return inner_.ensure_table(schema); });
    }
    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        return ask([&] { return inner_.read(keys); });
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        return inner_.write(writes);
    }
    store::Page query(const store::Query& query) override {
        return ask([&] { return inner_.query(query); });
    }
    store::Page scan(const store::Scan& scan) override {
        return ask([&] { return inner_.scan(scan); });
    }
    store::Capabilities capabilities() const override { return inner_.capabilities(); }
    std::vector<store::Change> changes(const std::string& table, store::Position after, std::size_t limit) override {
        return ask([&] { return inner_.changes(table, after, limit); });
    }
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override {
        return inner_.write_atomically(writes);
    }

  private:
    template <class Request>
    auto ask(const Request& request) -> decltype(request()) {
        std::optional<Backoff> backoff;
        for (;;) {
            try {
                return request();
            } catch (const UnavailableError& error) {
                if (!backoff) backoff.emplace(policy_, runtime_);
                if (!error.retryable() || !backoff->next()) throw;
            }
        }
    }

    store::ItemStore& inner_;
    Runtime runtime_;
    RetryPolicy policy_;
};

}  // namespace varve::transactions
