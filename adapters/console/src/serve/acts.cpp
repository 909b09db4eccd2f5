#include "reports.h"
#include "serve/api.h"

#include <varve/commands/application.h>
#include <varve/core/json.h>
#include <varve/locks/locks.h>
#include <varve/operations/followers.h>
#include <varve/operations/timers.h>
#include <varve/operations/transactions.h>
#include <varve/processes/parked_timer.h>

#include <string>
#include <vector>

namespace varve::console::serve {

namespace {

/// Who acts says twice what is done: in the path, and here.
struct Settle {
    std::string confirm;      // "settle"
    std::string transaction;  // empty: all whose lease is over
};
struct Evict {
    std::string confirm;  // "evict"
    std::string lock;
    locks::Ticket ticket = 0;
};
struct ActOnFollower {
    std::string confirm;  // "rebuild", "pause", "resume", "retry"
    std::string follower;
};
struct ActOnTimer {
    std::string confirm;  // "drop", "retry"
    std::string name;     // of the timer; or the follower whose failed ones are fired again
};

struct SettledTransaction {
    std::string transaction;
    std::string verdict;
};
struct SettledReport {
    std::vector<SettledTransaction> settled;
};
struct DoneReport {
    bool done = false;
    std::string message;
};

template <class T>
T confirmed(const std::string& act, const std::string& body) {
    auto decoded = json::decode<T>(body, {.require_all = true});
    if (!decoded) throw BadRequest("this cannot be read: " + decoded.error().message);
    if (decoded->confirm != act) throw BadRequest("not confirmed: \"confirm\" must be \"" + act + "\"");
    return *std::move(decoded);
}

std::string done_if(bool is_done, const std::string& message) {
    return json::encode(DoneReport{is_done, message});
}

}  // namespace

Response Api::post(const Target& target, const Request& request) {
    const auto answered = [](std::string body) {
        return Response{.status = 200, .content_type = json_type, .body = std::move(body)};
    };
    if (target.path.size() != 3 || target.path[0] != "api" || !target.query.empty())
        return refusal(404, "not_found", "there is nothing here");
    const std::string& what = target.path[1];
    const std::string& act = target.path[2];
    const bool is_on_follower = act == "rebuild" || act == "pause" || act == "resume" || act == "retry";
    const bool is_known = (what == "transactions" && act == "settle") || (what == "locks" && act == "evict") ||
                          (what == "followers" && is_on_follower) ||
                          (what == "timers" && (act == "drop" || act == "retry"));
    if (!is_known) return refusal(404, "not_found", "there is nothing here");
    if (!console_.allow_writes)
        return refusal(403, "read_only", "this changes the store; start the server with --allow-writes");
    if (what == "transactions") return answered(settle(request.body));
    if (what == "locks") return answered(evict(request.body));
    if (what == "followers") return answered(act_on_follower(act, request.body));
    return answered(act_on_timer(act, request.body));
}

std::string Api::settle(const std::string& body) {
    const auto asked = confirmed<Settle>("settle", body);
    SettledReport report;
    if (asked.transaction.empty()) {
        const Duration patience = 3 * console_.program.options.transactions.lease + std::chrono::seconds{1};
        for (const operations::SettledTransaction& one : operations::settle_dead(application_, patience))
            report.settled.push_back({one.id, name_of(one.verdict)});
        return json::encode(report);
    }
    for (const operations::OpenTransaction& one : operations::open_transactions(application_, SIZE_MAX)) {
        if (one.id != asked.transaction) continue;
        const transactions::Verdict verdict = operations::settle(application_, one);
        if (verdict == transactions::Verdict::undecided)
            throw UnavailableError("the store did not answer what would have ended it; ask again");
        report.settled.push_back({one.id, name_of(verdict)});
    }
    return json::encode(report);
}

std::string Api::evict(const std::string& body) {
    const auto asked = confirmed<Evict>("evict", body);
    const bool is_evicted = application_.locks().evict(asked.lock, asked.ticket);
    return done_if(is_evicted, is_evicted ? "the ticket has lost it" : "the ticket neither has it nor waits for it");
}

std::string Api::act_on_follower(const std::string& act, const std::string& body) {
    const auto asked = confirmed<ActOnFollower>(act, body);
    if (act == "rebuild") {
        operations::rebuild(application_, asked.follower);
        return done_if(true, "its programs begin to make its rows anew within a few seconds");
    }
    if (act == "pause") {
        operations::pause_rebuild(application_, asked.follower);
        return done_if(true, "its rebuild waits");
    }
    if (act == "resume") {
        operations::resume_rebuild(application_, asked.follower);
        return done_if(true, "its rebuild goes on");
    }
    console_.check_has_follower(asked.follower);
    const std::size_t taken_up = application_.retry_parked(asked.follower);
    const std::size_t left = operations::parked(application_, asked.follower).size();
    return done_if(left == 0,
                   std::to_string(taken_up) + " streams are taken up again, " + std::to_string(left) + " stay aside");
}

std::string Api::act_on_timer(const std::string& act, const std::string& body) {
    const auto asked = confirmed<ActOnTimer>(act, body);
    if (act == "drop") {
        const bool is_dropped = operations::drop_timer(application_, asked.name);
        return done_if(is_dropped, is_dropped ? "it is given up" : "there is no such timer");
    }
    console_.check_has_follower(asked.name);
    const std::size_t fired = retry_timers(application_, asked.name);
    return done_if(true, std::to_string(fired) + " timers have not failed again");
}

}  // namespace varve::console::serve
