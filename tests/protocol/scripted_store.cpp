#include "protocol/scripted_store.h"

#include <varve/store/adapter.h>

namespace varve::protocol {

const char* to_string(Fault fault) {
    switch (fault) {
        case Fault::none: return "none";
        case Fault::stop_before: return "stop before";
        case Fault::stop_after: return "stop after";
        case Fault::pause_before: return "pause before";
        case Fault::pause_after: return "pause after";
        case Fault::lost_request: return "lost request";
        case Fault::lost_answer: return "lost answer";
        case Fault::late: return "late";
        case Fault::repeated: return "repeated";
    }
    return "unknown";
}

Fault ScriptedStore::next() {
    if (dead_) throw Stopped{};
    if (++requests_ != script_.at) return Fault::none;
    met_ = true;
    return script_.fault;
}

void ScriptedStore::deliver_late() {
    for (const auto& request : std::exchange(late_, {})) request();
}

template <class Answer, class Apply>
Answer ScriptedStore::send(Apply apply, std::function<void()> again) {
    ++writes_;
    const Failure nobody_knows{.kind = ErrorKind::unavailable, .in_doubt = true, .message = "no answer"};
    switch (next()) {
        case Fault::none: break;
        case Fault::stop_before: dead_ = true; throw Stopped{};
        case Fault::stop_after:
            static_cast<void>(apply());
            dead_ = true;
            throw Stopped{};
        case Fault::pause_before: script_.others(); break;
        case Fault::pause_after: {
            Answer answer = apply();
            script_.others();
            return answer;
        }
        case Fault::lost_request: return nobody_knows;
        case Fault::lost_answer: static_cast<void>(apply()); return nobody_knows;
        case Fault::late:
            late_.push_back(std::move(again));
            script_.others();
            return nobody_knows;
        case Fault::repeated: late_.push_back(std::move(again)); break;
    }
    return apply();
}

std::vector<store::WriteAnswer> ScriptedStore::write(std::span<const store::Write> writes) {
    std::vector<store::WriteAnswer> answers(writes.size());
    for (std::size_t n = 0; n < writes.size(); ++n) {
        const std::size_t i = script_.order == BatchOrder::forward ? n : writes.size() - 1 - n;
        const store::Write& one = writes[i];
        answers[i] = send<store::WriteAnswer>(
            [&] {
                return inner_.write({&one, 1}).front();
            },
            [this, one] {
                static_cast<void>(inner_.write({&one, 1}));
            });
    }
    return answers;
}

store::AtomicAnswer ScriptedStore::write_atomically(std::span<const store::Write> writes) {
    return send<store::AtomicAnswer>(
        [&] { return inner_.write_atomically(writes); },
        [this, all = std::vector(writes.begin(), writes.end())] { static_cast<void>(inner_.write_atomically(all)); });
}

}  // namespace varve::protocol
