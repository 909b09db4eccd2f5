// What DynamoDB's limits mean to commands.

#include "each_server.h"
#include "support/account.h"

#include <varve/store/open.h>
#include <varve/testing/counting_store.h>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

using namespace account;
using transactions::Path;
using transactions::Strategy;

struct Note {
    static constexpr std::string_view table = "notes";
    std::string text;
};

class Limits : public EachServer {
  protected:
    void SetUp() override {
        EachServer::SetUp();
        if (!server_) return;
        store_ = std::make_shared<testing::CountingStore>(varve::open(server_->url("bank")));
    }

    std::shared_ptr<testing::CountingStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Each, Limits, each_kind(), name_of_kind);

TEST_P(Limits, a_command_whose_events_are_too_large_is_refused_before_its_first_write) {
    const std::string large(401 * 1024, 'x');
    for (const Strategy strategy : {Strategy::automatic, Strategy::protocol}) {
        Application bank{store_, {.transactions = {.strategy = strategy}, .feed = false}};
        // Of the three the first is the primary.
        for (const char* too_large : {"alice", "bob", "carol"}) {
            store_->reset();
            store_->start_recording();
            try {
                (void)bank.transact([&](Transaction& tx) {
                    for (const char* id : {"alice", "bob", "carol"})
                        tx.execute<Account>(id, Open{id == std::string_view{too_large} ? large : "small"});
                });
                ADD_FAILURE() << "no error";
            } catch (const InvalidError& error) {
                const std::string message = error.what();
                EXPECT_NE(message.find("events/account-" + std::string{too_large} + "/1"), std::string::npos)
                    << message;
                EXPECT_NE(message.find("at most 4095"), std::string::npos) << message;
                EXPECT_NE(message.find(" has 41"), std::string::npos) << message;
            }
            for (const std::string& line : store_->recorded()) EXPECT_FALSE(line.starts_with("write")) << line;
        }
        EXPECT_THROW((void)bank.execute<Account>("dora", Open{large}), InvalidError);
        ASSERT_TRUE(bank.execute<Account>("dora", Deposit{1}));
    }
}

TEST_P(Limits, a_row_whose_two_images_do_not_fit_into_one_item_is_refused_before_the_first_write) {
    const ApplicationOptions options{.transactions = {.strategy = Strategy::protocol}, .feed = false};
    const auto write = [](Application& bank, char what) {
        return bank.transact([&](Transaction& tx) {
            tx.execute<Account>("alice", Deposit{1});
            tx.rows<Note>().put("alice", {.text = std::string(250 * 1024, what)});
        });
    };
    // The destructor waits for what finalises in the background.
    ASSERT_TRUE(write(*std::make_unique<Application>(store_, options), 'x'));
    Application bank{store_, options};
    store_->reset();
    store_->start_recording();
    try {
        (void)write(bank, 'y');
        ADD_FAILURE() << "no error";
    } catch (const InvalidError& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find("notes/alice has 512"), std::string::npos) << message;
        EXPECT_NE(message.find("at most 4095"), std::string::npos) << message;
    }
    for (const std::string& line : store_->recorded()) EXPECT_FALSE(line.starts_with("write")) << line;
    EXPECT_EQ(bank.load<Account>("alice").version, 1);
}

TEST_P(Limits, a_transaction_may_be_over_more_items_than_a_request_of_the_servers) {
    Application bank{store_, {.feed = false}};
    constexpr int size = 101;
    const Outcome outcome = bank.transact([&](Transaction& tx) {
        for (int i = 0; i < size; ++i) tx.execute<Account>(std::to_string(i), Deposit{1});
    });
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->path, Path::protocol);
    EXPECT_EQ(outcome->written.size(), static_cast<std::size_t>(size));
    EXPECT_EQ(bank.load<Account>("100").state.balance, 1);
}

TEST_P(Limits, a_transaction_may_have_more_bytes_than_a_request_of_the_servers) {
    Application bank{store_};
    const std::string owner(300 * 1024, 'x');
    const Outcome outcome = bank.transact([&](Transaction& tx) {
        for (int i = 0; i < 14; ++i) tx.execute<Account>(std::to_string(i), Open{owner});
    });
    ASSERT_TRUE(outcome);
    EXPECT_EQ(bank.load<Account>("13").state.owner, owner);
}

}  // namespace
}  // namespace varve::dynamodb
