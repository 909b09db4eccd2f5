#pragma once

#include <varve/core/error.h>
#include <varve/store/item_store.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace varve::protocol {

/// Thrown out of a store call by a process that has ended there. No framework code may catch it.
struct Stopped {};

/// What happens to one request of a process.
enum class Fault {
    none,
    stop_before,   ///< the process ends; the request was never sent
    stop_after,    ///< the request is applied; the process never learns
    pause_before,  ///< others run, then the process goes on with it
    pause_after,   ///< applied, others run, then the process gets its answer
    lost_request,  ///< never applied; the answer says that nobody knows
    lost_answer,   ///< applied; the answer says that nobody knows
    late,          ///< the answer says that nobody knows, others run; it arrives when `deliver_late` is called
    repeated,      ///< applied and answered, and once more when `deliver_late` is called
};
inline constexpr Fault all_faults[] = {Fault::stop_before,  Fault::stop_after,  Fault::pause_before, Fault::pause_after,
                                       Fault::lost_request, Fault::lost_answer, Fault::late,         Fault::repeated};
const char* to_string(Fault fault);

/// In which order the writes of one batch reach the store.
enum class BatchOrder { forward, backward };

/// One process's connection: the n-th request it makes meets a fault. Each write of a batch is a request of its own, so
/// that every prefix of a batch is met.
///
/// Threads: belongs to one.
class ScriptedStore final : public store::ItemStore {
  public:
    struct Script {
        unsigned at = 0;  ///< counted from 1; 0: never
        Fault fault = Fault::none;
        BatchOrder order = BatchOrder::forward;
        std::function<void()> others = {};  ///< run by a pause and by `late`
    };

    explicit ScriptedStore(store::ItemStore& inner) : inner_(inner) {}
    ScriptedStore(store::ItemStore& inner, Script script) : inner_(inner), script_(std::move(script)) {}

    unsigned requests() const { return requests_; }
    unsigned writes() const { return writes_; }
    /// Whether the fault has happened.
    bool met() const { return met_; }
    void deliver_late();

    void ensure_table(const store::TableSchema& schema) override { inner_.ensure_table(schema); }
    bool has_table(const store::TableSchema& schema) override { return inner_.has_table(schema); }
    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        return ask([&] { return inner_.read(keys); });
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override;
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
    store::Position last_change(const std::string& table) override {
        return ask([&] { return inner_.last_change(table); });
    }
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override;

  private:
    Fault next();
    template <class Ask>
    auto ask(Ask read) -> decltype(read());
    template <class Answer, class Apply>
    Answer send(Apply apply, std::function<void()> again);

    store::ItemStore& inner_;
    const Script script_ = {};
    unsigned requests_ = 0;
    unsigned writes_ = 0;
    bool met_ = false;
    bool dead_ = false;
    std::vector<std::function<void()>> late_;
};

template <class Ask>
auto ScriptedStore::ask(Ask read) -> decltype(read()) {
    switch (next()) {
        case Fault::stop_before:
        case Fault::stop_after: dead_ = true; throw Stopped{};
        case Fault::pause_before: script_.others(); break;
        case Fault::pause_after: {
            auto answer = read();
            script_.others();
            return answer;
        }
        case Fault::lost_request:
        case Fault::lost_answer: throw UnavailableError("no answer");
        default: break;
    }
    return read();
}

}  // namespace varve::protocol
