#pragma once

#include <string>
#include <vector>

namespace varve {

/// A text, and whether it is a JSON value to varve.
struct JsonCase {
    std::string text;
    bool valid;
};

/// What a parser of JSON meets: what RFC 8259 allows, what it forbids, and what it leaves to the parser.
inline std::vector<JsonCase> json_cases() {
    std::vector<JsonCase> cases;
    for (const char* text : {"null",
                             "true",
                             "false",
                             "0",
                             "-0",
                             "-1",
                             "1.5",
                             "1e2",
                             "1E+2",
                             "0.1e-2",
                             "-0.0",
                             "1E22",
                             "123.456e78",
                             "9223372036854775808",
                             "-9223372036854775809",
                             "\"\"",
                             "\"a\"",
                             "\"\\u0000\"",
                             "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                             "\"\\ud834\\udd1e\"",
                             "\"\\uffff\"",
                             "\"\x7f\"",
                             "\"\xc3\xa9\"",
                             "\"\xf0\x9d\x84\x9e\"",
                             "\"\xe2\x80\xa8\"",
                             "[]",
                             "[ ]",
                             "[1,2]",
                             "[[[]]]",
                             "{}",
                             "{\"a\":1}",
                             "{ \"a\" : [ null ] }",
                             "{\"\":0}",
                             "{\"a\":1,\"a\":2}",
                             " 1 ",
                             "\t\n\r 1"}) {
        cases.push_back({text, true});
    }
    for (const char* text : {"",
                             " ",
                             "nul",
                             "True",
                             "nullx",
                             "NaN",
                             "Infinity",
                             "-Infinity",
                             "-",
                             "+1",
                             "01",
                             "-01",
                             ".5",
                             "1.",
                             "1.e1",
                             "1e",
                             "1e+",
                             "0x1",
                             "1 2",
                             "1_000",
                             "\"",
                             "\"a",
                             "'a'",
                             "\"\\\"",
                             "\"\\x41\"",
                             "\"\\u12\"",
                             "\"\\u12g4\"",
                             "\"\\U0041\"",
                             "\"a\nb\"",
                             "\"\t\"",
                             "\"\x1f\"",
                             "[",
                             "]",
                             "[1",
                             "[1,",
                             "[1,]",
                             "[,1]",
                             "[1 2]",
                             "[1]]",
                             "{",
                             "{\"a\"",
                             "{\"a\":",
                             "{\"a\":1",
                             "{\"a\":1,}",
                             "{,}",
                             "{a:1}",
                             "{1:1}",
                             "{\"a\" 1}",
                             "{\"a\":1 \"b\":2}",
                             "{\"a\":1}}",
                             "// x\n1",
                             "/* x */ 1",
                             "#1",
                             "\xef\xbb\xbf"
                             "1",
                             "\xc2\xa0"
                             "1",
                             "\f1",
                             "\"\xff\"",
                             "\"\xc3\"",
                             "\"\xc0\x80\"",
                             "\"\xe0\x80\x80\"",
                             "\"\xed\xa0\x80\"",
                             "\"\xf4\x90\x80\x80\"",
                             "\xff",
                             "\"\\ud800\"",
                             "\"\\udc00\"",
                             "\"\\udc00\\ud800\"",
                             "\"\\ud800a\"",
                             "\"\\ud800\\n\"",
                             "{\"\\udc00\":1}",
                             "{\"\xff\":1}"}) {
        cases.push_back({text, false});
    }
    // Left to the parser: what is smaller than any double is read, what is larger is not.
    for (const char* text : {"1e-400", "0.1e-2147483648", "0.0000000001e-2147483639", "1e-99999999999999999999"})
        cases.push_back({text, true});
    for (const char* text : {"1e309", "-1e400", "1e99999999999999999999"}) cases.push_back({text, false});
    return cases;
}

}  // namespace varve
