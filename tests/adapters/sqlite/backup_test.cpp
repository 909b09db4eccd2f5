#include "scratch_file.h"
#include "support/account.h"

#include <varve/memory/memory.h>
#include <varve/store/item_store.h>

#include <array>
#include <atomic>
#include <thread>

#include <sys/stat.h>

namespace varve::sqlite {
namespace {

using account::Account;

constexpr int savers = 4;
constexpr std::int64_t initial_cents = 1000;

std::string customer(int number) {
    return "customer-" + std::to_string(number);
}

TEST(Backup, made_under_load_is_one_state_whole_and_goes_on_as_a_store) {
    const ScratchFile file;
    const std::string copy = file.directory() + "/copy.db";
    std::array<std::int64_t, savers> acknowledged{};  // before the backup began
    {
        Options options = file.options();
        options.synchronous = Synchronous::normal;
        const auto store = sqlite::open(options);
        store->ensure_table(accounts);
        for (std::int64_t version = 1; version <= 10; ++version) {
            ASSERT_TRUE(is_applied(
                write_one(*store, {account("large", version), store::Put{{{"text", std::string(2'000'000, 'x')}}}})));
        }
        Application bank{store};
        for (int i = 0; i < savers; ++i) (void)bank.execute<Account>(customer(i), account::Deposit{initial_cents});
        std::array<std::atomic<std::int64_t>, savers> transfers{};
        std::atomic<bool> over = false;
        std::vector<std::jthread> callers;
        for (int i = 0; i < savers; ++i) {
            callers.emplace_back([&, i] {
                while (!over) {
                    const auto outcome = bank.transact([&](Transaction& tx) {
                        tx.execute<Account>(customer(i), account::Withdraw{1});
                        tx.execute<Account>(customer((i + 1) % savers), account::Deposit{1});
                        tx.execute<Account>("transfers-of-" + customer(i), account::Deposit{1});
                    });
                    if (outcome) ++transfers.at(static_cast<std::size_t>(i));
                }
            });
        }
        for (const auto& done : transfers) {
            while (done < 5) std::this_thread::yield();
        }
        for (std::size_t i = 0; i < acknowledged.size(); ++i) acknowledged.at(i) = transfers.at(i);
        std::vector<BackupProgress> progress;
        backup(*store, copy, [&](const BackupProgress& now) { progress.push_back(now); });
        over = true;
        callers.clear();
        ASSERT_GT(progress.size(), 2U);
        EXPECT_LT(progress.front().bytes, progress.front().bytes_total);
        EXPECT_EQ(progress.back().bytes, progress.back().bytes_total);
        EXPECT_EQ(progress.back().bytes, std::filesystem::file_size(copy));
    }
    Application restored{varve::open("sqlite:" + copy)};
    std::int64_t sum = 0;
    for (int i = 0; i < savers; ++i) {
        sum += restored.load<Account>(customer(i)).state.balance;
        EXPECT_GE(restored.load<Account>("transfers-of-" + customer(i)).state.balance,
                  acknowledged.at(static_cast<std::size_t>(i)))
            << "an acknowledged transfer is missing";
    }
    EXPECT_EQ(sum, savers * initial_cents) << "a transfer is there by half";
    EXPECT_TRUE(restored.execute<Account>(customer(0), account::Deposit{1}));
}

TEST(Backup, replaces_nothing_and_leaves_nothing_behind_when_it_fails) {
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    EXPECT_THROW(backup(*store, file.path()), ConfigError);
    EXPECT_THROW(backup(*store, file.directory() + "/missing/copy.db"), ConfigError);
    EXPECT_THROW(backup(*memory::open(), file.directory() + "/copy.db"), InvalidError);
    struct Enough {};
    EXPECT_THROW(backup(*store, file.directory() + "/copy.db", [](const BackupProgress&) { throw Enough{}; }), Enough);
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator{file.directory()}) {
        ++files;
        EXPECT_TRUE(entry.path().filename().string().starts_with("store.db")) << entry.path();
        EXPECT_EQ(entry.path().filename().string().find(".new-"), std::string::npos) << entry.path();
    }
    EXPECT_EQ(files, 3U);
}

TEST(Backup, has_the_permissions_of_its_original) {
    const ScratchFile file;
    Options options = file.options();
    options.mode = 0600;
    backup(*sqlite::open(options), file.directory() + "/copy.db");
    struct stat found {};
    ASSERT_EQ(stat((file.directory() + "/copy.db").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U);
}

}  // namespace
}  // namespace varve::sqlite
