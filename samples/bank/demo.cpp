#include "demo.h"

#include "balances.h"
#include "child.h"
#include "exit_codes.h"
#include "progress.h"
#include "told.h"
#include "turnover.h"

#include <varve/store/item_store.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <unordered_set>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace bank {

namespace {

/// While it lives, SIGINT and SIGTERM are read from a descriptor instead of ending the process.
class SignalsAsInput {
  public:
    SignalsAsInput() {
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &signals, &before_);
        descriptor_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    ~SignalsAsInput() {
        ::close(descriptor_);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    SignalsAsInput(const SignalsAsInput&) = delete;
    SignalsAsInput& operator=(const SignalsAsInput&) = delete;

    int descriptor() const { return descriptor_; }
    /// The signal that has come; nullopt: none.
    std::optional<int> take() const {
        signalfd_siginfo info;
        if (::read(descriptor_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
        return static_cast<int>(info.ssi_signo);
    }

  private:
    sigset_t before_;
    int descriptor_;
};

/// A process and its successors, which together make a share of the transfers.
struct Lane {
    std::size_t left;  ///< transfers that are still to be ended
    std::optional<Child> child = {};
    std::unordered_set<std::string> begun = {};  ///< by the child, and not ended yet
    Recoveries recoveries = {};                  ///< the child's own, as told last
    std::optional<std::size_t> failed_at = {};   ///< how many transfers had ended when the store failed it last
};

class Demo {
  public:
    explicit Demo(const DemoPlan& plan) : plan_(plan) {}

    DemoResult run() {
        {
            const auto bank = open();
            if (!bank->rows<Balance>().all({.limit = 1}).rows.empty()) {
                throw varve::ConfigError("there are accounts in " + plan_.store +
                                         " already; the demo begins with an empty store");
            }
            open_accounts(*bank, plan_.load);
            result_.before = audit(*bank).money;
            result_.natively = plan_.strategy == "automatic" && bank->store().capabilities().atomic_writes_max > 0;
        }  // closed: children open their own
        const auto began = std::chrono::steady_clock::now();
        pay_and_kill();
        result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        result_.figures.finish();
        const auto bank = open();
        // Nobody may write during the audit, so it is let go when it is through. If not, the audit says so.
        (void)bank->wait_for<SumUpTurnover>({}, std::chrono::minutes{1});
        summing_.reset();
        result_.audit = audit(*bank);
        result_.after = result_.audit.money;
        for (const std::string& id : acknowledged_) result_.acknowledged.count(result_.audit, id);
        for (const std::string& id : refused_) result_.refused.count(result_.audit, id);
        for (const std::string& id : cut_off_) result_.cut_off.count(result_.audit, id);
        return std::move(result_);
    }

  private:
    std::unique_ptr<varve::Application> open() const {
        auto bank = std::make_unique<varve::Application>(
            varve::open(plan_.store), varve::ApplicationOptions{.transactions = {.lease = plan_.lease},
                                                                .locks = {.time_to_live = plan_.lease},
                                                                .runtime = plan_.runtime});
        bank->project<Account>(ProjectBalance{});
        follow_turnover(*bank);
        return bank;
    }

    std::vector<std::string> arguments(std::initializer_list<std::string> more) const {
        std::vector<std::string> all{plan_.program,
                                     "--store",
                                     plan_.store,
                                     "--strategy",
                                     plan_.strategy,
                                     "--lease-ms",
                                     std::to_string(plan_.lease.count())};
        all.insert(all.end(), plan_.arguments.begin(), plan_.arguments.end());
        all.insert(all.end(), more);
        return all;
    }

    void start(Lane& lane) {
        const Load& load = plan_.load;
        // No two draw the same.
        const std::uint64_t seed = load.seed == 0 ? 0 : load.seed + started_++;
        lane.child.emplace(arguments({"pay", "--tell",                                 //
                                      "--transfers", std::to_string(lane.left),        //
                                      "--workers", std::to_string(load.workers),       //
                                      "--accounts", std::to_string(load.accounts),     //
                                      "--distribution", to_string(load.distribution),  //
                                      "--theta", std::to_string(load.theta),           //
                                      "--seed", std::to_string(seed)}));
    }

    void start_summing() {
        summing_.emplace(arguments({"turnover", "--follow"}));
        sums_ = false;
    }

    void pay_and_kill() {
        for (std::size_t i = 0; i < plan_.processes; ++i) {
            Lane& lane = lanes_.emplace_back(Lane{.left = share(i)});
            if (lane.left > 0) start(lane);
        }
        start_summing();
        Progress progress{"paying", plan_.load.transfers};
        while (std::ranges::any_of(lanes_, [](const Lane& lane) { return lane.child.has_value(); })) {
            wait_for_news();
            throw_if_interrupted();
            for (Lane& lane : lanes_) {
                if (lane.child) listen(lane);
            }
            listen_to_sums();
            plan_.watch(ended_);
            progress.update(ended_, std::to_string(result_.kills) + " killed");
            if (kill_is_due()) kill_one();
        }
    }

    /// Everybody in turn; who is not at work is passed over.
    void kill_one() {
        for (std::size_t tries = 0; tries <= lanes_.size(); ++tries) {
            const std::size_t victim = victim_++ % (lanes_.size() + 1);
            if (victim == lanes_.size()) {
                if (!sums_) continue;
                summing_->kill(SIGKILL);
                summing_->wait();
                ++result_.kills;
                ++result_.kills_while_summing;
                return start_summing();
            }
            Lane& lane = lanes_[victim];
            if (lane.child && !lane.begun.empty() && lane.left > lane.begun.size()) return kill_and_replace(lane);
        }
    }

    void throw_if_interrupted() const {
        if (const std::optional<int> signal = signals_.take()) throw Interrupted{*signal, ended_, result_.kills};
    }

    std::size_t share(std::size_t i) const {
        return plan_.load.transfers / plan_.processes + (i < plan_.load.transfers % plan_.processes ? 1 : 0);
    }

    /// The last one while at least a fifth of the transfers are still to be done, so that there is a process to kill.
    bool kill_is_due() const {
        return result_.kills < plan_.kills &&
               ended_ >= (result_.kills + 1) * plan_.load.transfers / (plan_.kills + 1 + plan_.kills / 4);
    }

    void wait_for_news() const {
        std::vector<pollfd> waited{{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0}};
        for (const Lane& lane : lanes_) {
            if (lane.child) waited.push_back({.fd = lane.child->output(), .events = POLLIN, .revents = 0});
        }
        waited.push_back({.fd = summing_->output(), .events = POLLIN, .revents = 0});
        ::poll(waited.data(), waited.size(), -1);
    }

    /// Reads what the child has told; sees to its end.
    void listen(Lane& lane) {
        bool ended = false;
        read(lane, ended);
        if (!ended) return;
        const int code = lane.child->wait();
        lane.child.reset();
        result_.recoveries += std::exchange(lane.recoveries, {});
        const bool store_failed = code == exit_failed || code == exit_in_doubt;
        if (store_failed && lane.left > 0 && (!lane.failed_at || ended_ > *lane.failed_at)) {
            // Whoever runs processes starts such a one again, as long as there is progress.
            lane.failed_at = ended_;
            ++result_.failures;
            replace(lane);
            return;
        }
        if (code != 0 || lane.left > 0) {
            throw_if_interrupted();  // a terminal's Ctrl-C has reached the child, too
            throw std::runtime_error("a process that nobody killed ended with code " + std::to_string(code) + " and " +
                                     std::to_string(lane.left) + " transfers to go");
        }
    }

    void listen_to_sums() {
        bool ended = false;
        if (!summing_->lines(ended).empty()) sums_ = true;
        if (!ended) return;
        const int code = summing_->wait();
        if (code != exit_failed) {  // the store failed it: while others get on with that, it may too
            throw_if_interrupted();
            throw std::runtime_error("the process that sums up ended by itself, with code " + std::to_string(code));
        }
        ++result_.failures;
        start_summing();
    }

    void read(Lane& lane, bool& ended) {
        for (const std::string& line : lane.child->lines(ended)) {
            auto told = varve::json::decode<Told>(line);
            if (!told) throw std::runtime_error("a process told what cannot be read: " + told.error().message);
            if (told->begun) lane.begun.insert(*told->begun);
            if (told->ended) end(lane, *told);
        }
    }

    void end(Lane& lane, const Told& told) {
        const Ended ended{.id = *told.ended,
                          .ending = told.ending.value_or(Ending::in_doubt),
                          .took = std::chrono::microseconds{told.took_us.value_or(0)},
                          .attempts = told.attempts.value_or(1)};
        result_.figures.add(ended);
        lane.begun.erase(ended.id);
        if (lane.left > 0) --lane.left;
        ++ended_;
        lane.recoveries = told.recoveries.value_or(Recoveries{});
        if (ended.ending == Ending::committed) acknowledged_.push_back(ended.id);
        if (ended.ending == Ending::rejected || ended.ending == Ending::gave_up) refused_.push_back(ended.id);
        if (ended.ending == Ending::in_doubt) cut_off_.push_back(ended.id);
    }

    void kill_and_replace(Lane& lane) {
        lane.child->kill(SIGKILL);
        lane.child->wait();
        bool ended = false;
        read(lane, ended);  // what it told before it died counts
        result_.recoveries += std::exchange(lane.recoveries, {});
        ++result_.kills;
        replace(lane);
    }

    void replace(Lane& lane) {
        std::ranges::copy(lane.begun, std::back_inserter(cut_off_));
        lane.begun.clear();
        lane.child.reset();
        if (lane.left > 0) start(lane);
    }

    const DemoPlan& plan_;
    SignalsAsInput signals_;
    std::vector<Lane> lanes_;
    std::optional<Child> summing_;
    bool sums_ = false;  // and has told so since it was started
    std::size_t victim_ = 0;
    std::size_t ended_ = 0;
    std::uint64_t started_ = 0;
    std::vector<std::string> acknowledged_;
    std::vector<std::string> refused_;
    std::vector<std::string> cut_off_;
    DemoResult result_;
};

}  // namespace

void Fates::count(const Audit& audit, const std::string& transfer) {
    const auto found = audit.transfers.find(transfer);
    if (found == audit.transfers.end()) {
        ++absent;
    } else {
        ++(found->second ? whole : half);
    }
}

bool DemoResult::holds() const {
    return audit.holds() && before == after && acknowledged.whole == acknowledged.total() &&
           refused.absent == refused.total() && cut_off.half == 0;
}

DemoResult run_demo(const DemoPlan& plan) {
    return Demo{plan}.run();
}

}  // namespace bank
