#include "errors.h"

#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

TEST(Errors, each_name_has_one_rule) {
    std::set<std::string_view> names;
    for (const ErrorRule& rule : error_rules()) EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
}

TEST(Errors, the_readme_shows_the_table) {
    std::ifstream file{VARVE_DYNAMODB_README};
    ASSERT_TRUE(file) << VARVE_DYNAMODB_README;
    std::set<std::string> documented;
    std::string line;
    while (std::getline(file, line) && line != "## Errors") {
    }
    while (std::getline(file, line)) {
        if (line.starts_with("| `") && line.find("` | `") != std::string::npos) documented.insert(line);
    }
    std::set<std::string> expected;
    for (const ErrorRule& rule : error_rules()) {
        expected.insert("| `" + std::string{rule.name} + "` | `" + std::string{to_string(rule.course)} + "` | `" +
                        to_string(rule.kind) + "` | " + std::string{rule.advice} + " |");
    }
    EXPECT_EQ(documented, expected);
}

TEST(Errors, what_nobody_documented_is_decided_by_its_status) {
    EXPECT_EQ(rule_for("Surprise", 500).course, Course::in_doubt);
    EXPECT_EQ(rule_for("Surprise", 503).course, Course::in_doubt);
    EXPECT_EQ(rule_for("Surprise", 429).course, Course::retry);
    EXPECT_EQ(rule_for("Surprise", 404).course, Course::fatal);
    EXPECT_EQ(rule_for("", 408).course, Course::in_doubt);
    EXPECT_EQ(rule_for("", 413).kind, ErrorKind::invalid);
    EXPECT_EQ(rule_for("", 302).course, Course::in_doubt);
}

TEST(Errors, what_may_quote_signed_headers_is_marked) {
    for (const ErrorRule& rule : error_rules()) {
        const bool about_signing = rule.course == Course::clock || rule.course == Course::credentials ||
                                   rule.name.find("Signature") != std::string_view::npos ||
                                   rule.name.find("Token") != std::string_view::npos;
        EXPECT_TRUE(rule.tells_secrets || !about_signing) << rule.name;
    }
}

}  // namespace
}  // namespace varve::dynamodb
