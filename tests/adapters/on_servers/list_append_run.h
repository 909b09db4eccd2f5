// Processes append to lists and read them at once, some are killed; what they were told must be strictly serializable.

#pragma once

#include "child.h"
#include "history_json.h"
#include "list_append.h"

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

namespace varve::on_servers {

/// The lines that all processes have told, by transaction: what was told last counts.
class ToldLists {
  public:
    void add(const std::string& line) {
        const std::string id = line.substr(0, line.find(','));
        ended_ += line.find("\"status\":\"info\"") == std::string::npos ? 1 : 0;
        lines_.insert_or_assign(id, line);
    }
    int ended() const { return ended_; }
    checkers::History history() const {
        std::string text = "[{\"name\":\"lists\",\"txns\":[";
        for (const auto& [id, line] : lines_) text += (text.back() == '[' ? "" : ",") + line;
        return checkers::parse_histories(text + "]}]").at(0);
    }

  private:
    std::map<std::string, std::string> lines_;
    int ended_ = 0;
};

/// Each process has a store of its own at `url`.
inline void run_list_append(const std::string& url) {
    constexpr std::size_t processes = 4;
    constexpr int transactions = 150;  // of each process that is not killed
    constexpr int kills = 4;
    int started = 0;
    const auto start = [&] {
        return std::make_unique<bank::Child>(
            std::vector<std::string>{VARVE_LIST_WORKER, url, std::to_string(++started), std::to_string(transactions)});
    };
    std::vector<std::unique_ptr<bank::Child>> children;
    for (std::size_t i = 0; i < processes; ++i) children.push_back(start());
    ToldLists told;
    int killed = 0;
    const auto listen = [&](bank::Child& child) {
        bool ended = false;
        for (const std::string& line : child.lines(ended)) told.add(line);
        return !ended;
    };
    while (!children.empty()) {
        std::vector<pollfd> waited;
        for (const auto& child : children) waited.push_back({.fd = child->output(), .events = POLLIN, .revents = 0});
        ::poll(waited.data(), waited.size(), -1);
        for (auto& child : children) {
            if (listen(*child)) continue;
            EXPECT_EQ(child->wait(), 0);
            child.reset();
        }
        std::erase(children, nullptr);
        // Spread over the run; who has not begun yet would die of nothing.
        if (killed < kills && !children.empty() && told.ended() >= (killed + 1) * transactions / 2) {
            auto& victim = children[static_cast<std::size_t>(killed++) % children.size()];
            victim->kill(SIGKILL);
            victim->wait();
            listen(*victim);
            victim = start();
        }
    }
    EXPECT_EQ(killed, kills);
    const checkers::History history = told.history();
    std::map<checkers::Status, int> count;
    for (const checkers::Transaction& one : history.transactions) ++count[one.status];
    EXPECT_GT(count[checkers::Status::ok], static_cast<int>(processes) * transactions / 2);
    for (const checkers::Finding& finding : checkers::check(history)) {
        ADD_FAILURE() << name(finding.anomaly) << "\n" << ::testing::PrintToString(finding.explanation);
    }
    std::cout << count[checkers::Status::ok] << " committed, " << count[checkers::Status::fail] << " aborted, "
              << count[checkers::Status::info] << " cut off\n";
}

}  // namespace varve::on_servers
