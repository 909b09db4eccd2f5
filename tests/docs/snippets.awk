# awk -v what=WHAT -f snippets.awk PAGE…: takes the code blocks out of pages (CMakeLists.txt says which there are).
#
#     what=pages    one C++ file with a namespace and a test for each page
#     what=program  the program of a page: its block that has a main()
#     what=printed  what that program is said to print
#     what=cmake    the page's first block of CMake
#     what=console  its dialogues with a shell

FNR == 1 { end_page(); page = FILENAME; name = page_name(page) }

/^```/ && !inside {
    inside = 1
    info = substr($0, 4)
    block = ""
    first_line = FNR + 1
    next
}
/^```/ {
    inside = 0
    end_block()
    next
}
inside { block = block $0 "\n"; next }
/^It prints/ { after_code = "program"; next }
/[^ \t]/ { after_code = "" }

END { end_page(); if (what == "pages") print_pages() }

function page_name(path) {
    sub(/.*\//, "", path)
    sub(/\.md$/, "", path)
    gsub(/[^A-Za-z0-9]/, "_", path)
    return tolower(path)
}

function end_block() {
    if (info == "cpp" && block ~ /int main\(/) {
        if (what == "program") printf "#line %d \"%s\"\n%s", first_line, page, block
    } else if (info == "cpp") {
        after_code = ""
        declarations = declarations "#line " first_line " \"" page "\"\n" without_includes(block)
    } else if (info == "cpp run") {
        after_code = "run"
        end_run()
        runs = runs "::testing::internal::CaptureStdout();\n#line " first_line " \"" page "\"\n" without_includes(block)
        open_run = 1
    } else if (info == "text") {
        if (after_code == "program" && what == "printed") printf "%s", block
        if (after_code == "run") {
            runs = runs "EXPECT_EQ(::testing::internal::GetCapturedStdout(), R\"docs(" block ")docs\");\n"
            open_run = 0
        }
        after_code = ""
    } else if (info == "cmake" && what == "cmake" && !has_cmake) {
        has_cmake = 1
        printf "%s", block
    } else if (info == "console" && what == "console") {
        printf "%s", block
    }
}

# A block that says nothing of what it prints may print what it likes.
function end_run() {
    if (open_run) runs = runs "::testing::internal::GetCapturedStdout();\n"
    open_run = 0
}

# Includes belong to the top of the file.
function without_includes(text,    lines, count, i, rest) {
    count = split(text, lines, "\n")
    rest = ""
    for (i = 1; i < count; i++) {
        if (lines[i] ~ /^#include/) {
            includes[lines[i]] = 1
            rest = rest "\n"
        } else {
            rest = rest lines[i] "\n"
        }
    }
    return rest
}

function end_page() {
    end_run()
    if (declarations != "" || runs != "") {
        bodies = bodies "namespace docs_" name " {\n" declarations
        if (runs != "") bodies = bodies "TEST(Docs, what_" name "_shows_works) {\n" runs "}\n"
        bodies = bodies "}\n"
    }
    declarations = runs = ""
}

function print_pages(    line) {
    print "#include <varve/varve.h>\n#include <gtest/gtest.h>\n#include <iostream>"
    for (line in includes) print line
    printf "%s", bodies
}
