#include "testing/conformance.h"

#include <atomic>

namespace varve::testing::detail {

void add_concurrency_cases(Cases& cases) {
    cases.add("no_increment_by_concurrent_writers_is_lost", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        constexpr int writers = 4;
        constexpr int increments = 25;
        put(*fresh.store, plain("counter"), {{"n", 0}});
        in_parallel(writers, [&](std::size_t) {
            std::optional<Item> current = read_one(*fresh.store, plain("counter"));
            for (int done = 0, attempts = 0; done < increments; ++attempts) {
                require(attempts < 50'000, "increments do not get through");
                require(current && integer(*current, "n") != nullptr, "the counter is gone");
                const std::int64_t n = *integer(*current, "n");
                const WriteAnswer answer =
                    write_one(*fresh.store,
                              {.key = plain("counter"), .action = Put{{{"n", n + 1}}}, .condition = equals("n", n)});
                if (const auto* refusal = std::get_if<Refused>(&answer)) {
                    current = refusal->current;
                    continue;
                }
                require(applied(answer), "an increment was " + to_text(answer));
                current = Item{{"n", n + 1}};
                ++done;
            }
        });
        require_equal(read_one(*fresh.store, plain("counter")), {Item{{"n", writers * increments}}}, "the counter");
    });

    cases.add("of_many_who_create_an_item_one_succeeds", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        constexpr std::size_t rivals = 8;
        constexpr int rounds = 20;
        std::vector<std::atomic<int>> winners(rounds);
        in_parallel(rivals, [&](std::size_t rival) {
            for (int round = 0; round < rounds; ++round) {
                const Item mine{{"owner", static_cast<std::int64_t>(rival)}};
                const WriteAnswer answer = write_one(
                    *fresh.store, {.key = number("p", round), .action = Put{mine}, .condition = !item_exists()});
                if (applied(answer)) {
                    ++winners[static_cast<std::size_t>(round)];
                    require_equal(read_one(*fresh.store, number("p", round)), {mine}, "what the winner finds");
                } else {
                    require(refused(answer) && std::get<Refused>(answer).current, "a loser was " + to_text(answer));
                }
            }
        });
        for (const auto& count : winners) require_equal(count.load(), 1, "winners of one item");
    });

    cases.add("batches_of_concurrent_writers_are_each_answered_for_themselves", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        constexpr std::size_t writers = 4;
        constexpr int items = 12;
        std::vector<std::atomic<int>> applied_count(items);
        in_parallel(writers, [&](std::size_t writer) {
            std::vector<Write> writes;
            for (int i = 0; i < items; ++i) {
                const int at = writer % 2 == 0 ? i : items - 1 - i;
                writes.push_back({.key = number("p", at), .action = Put{}, .condition = !item_exists()});
            }
            const auto answers = fresh.store->write(writes);
            for (std::size_t i = 0; i < writes.size(); ++i) {
                const auto at = static_cast<std::size_t>(std::get<std::int64_t>(writes[i].key.sort));
                if (applied(answers.at(i))) ++applied_count[at];
                require(applied(answers.at(i)) || refused(answers.at(i)), "a write " + to_text(answers.at(i)));
            }
        });
        for (const auto& count : applied_count) require_equal(count.load(), 1, "writers applied to one item");
    });

    cases.add("reads_and_queries_see_every_write_that_was_answered", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        constexpr std::size_t writers = 4;
        constexpr int items = 25;
        in_parallel(writers, [&](std::size_t writer) {
            for (int i = 0; i < items; ++i) {
                const Key key = number("p", static_cast<int>(writer) * items + i);
                put(*fresh.store, key, {{"i", i}});
                require_equal(read_one(*fresh.store, key), {Item{{"i", i}}}, "one's own item");
                const auto mine = query_all(*fresh.store, {.table = "numbers",
                                                           .partition = "p",
                                                           .first = static_cast<int>(writer) * items,
                                                           .last = static_cast<int>(writer) * items + items - 1});
                require_equal(mine.size(), static_cast<std::size_t>(i + 1), "one's own items in a query");
            }
        });
        require_equal(scan_all(*fresh.store, {.table = "numbers"}).size(), writers * items, "items in a scan");
    });

    cases.add("a_read_finds_an_item_as_one_writer_left_it", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        constexpr std::size_t writers = 2;
        put(*fresh.store, plain("a"), {{"x", 0}, {"y", 0}});
        std::atomic<std::size_t> running = writers;
        in_parallel(writers + 2, [&](std::size_t thread) {
            if (thread < writers) {
                for (int i = 1; i <= 60; ++i) {
                    const std::int64_t value = i * static_cast<int>(writers) + static_cast<int>(thread);
                    put(*fresh.store, plain("a"), {{"x", value}, {"y", value}});
                }
                --running;
                return;
            }
            do {
                const auto item = read_one(*fresh.store, plain("a"));
                require(item && item->size() == 2 && item->at("x") == item->at("y"), "a torn item: " + to_text(item));
            } while (running > 0);
        });
    });
}

}  // namespace varve::testing::detail
