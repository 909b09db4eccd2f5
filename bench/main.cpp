#include "figures.h"

#include <cstdio>
#include <exception>
#include <fstream>

#include <CLI/CLI.hpp>
#include <rapidjson/ostreamwrapper.h>
#include <rapidjson/prettywriter.h>
#include <unistd.h>

namespace {

void print(const bench::Figure& figure) {
    const auto decimals = [](double number) { return number < 100 ? 2 : 0; };
    std::printf("%-46s %12.*f %-13s %12.*f raw   ratio %5.2f\n", figure.name.c_str(), decimals(figure.rate),
                figure.rate, figure.unit.c_str(), decimals(figure.raw_rate), figure.raw_rate, figure.ratio());
    std::fflush(stdout);
}

void write_json(const std::string& path, const std::vector<bench::Figure>& figures) {
    std::ofstream file{path};
    rapidjson::OStreamWrapper stream{file};
    rapidjson::PrettyWriter<rapidjson::OStreamWrapper> json{stream};
    json.StartArray();
    for (const bench::Figure& figure : figures) {
        json.StartObject();
        json.Key("name");
        json.String(figure.name.c_str());
        json.Key("unit");
        json.String(figure.unit.c_str());
        json.Key("rate");
        json.Double(figure.rate);
        json.Key("raw_rate");
        json.Double(figure.raw_rate);
        json.Key("raw");
        json.String(figure.raw.c_str());
        json.Key("ratio");
        json.Double(figure.ratio());
        json.EndObject();
    }
    json.EndArray();
    file << '\n';
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace

int main(int argc, char** argv) try {
    bench::Plan plan;
    std::string json;
    long milliseconds = 1000;
    CLI::App app{
        "Rates of varve beside those of the raw store in the same run. Only the ratios travel to other machines."};
    app.add_option("--json", json, "write the figures to this file");
    app.add_option("--filter", plan.filter, "only figures whose name has this in it");
    app.add_option("--time-ms", milliseconds, "how long each rate is measured; each figure takes six times that")
        ->check(CLI::Range(10L, 60'000L))
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    plan.time = std::chrono::milliseconds{milliseconds};
    plan.folder = std::filesystem::temp_directory_path() / ("varve_bench." + std::to_string(getpid()));
    std::filesystem::create_directories(plan.folder);

    std::vector<bench::Figure> figures;
    std::vector<std::vector<bench::Figure> (*)(const bench::Plan&)> groups{
        bench::commands,      bench::loads,   bench::transfers, bench::hot_aggregates,
        bench::hot_transfers, bench::imports, bench::following, bench::processes};
#ifdef VARVE_DYNAMODB_SERVERS
    groups.push_back(bench::dynamodb);
    groups.push_back(bench::dynamodb_answers);
#endif
#ifdef VARVE_MESSAGE_DB
    groups.push_back(bench::postgres);
#endif
    for (const auto& group : groups) {
        for (bench::Figure& figure : group(plan)) {
            print(figure);
            figures.push_back(std::move(figure));
        }
    }
    std::filesystem::remove_all(plan.folder);
    if (figures.empty()) {
        std::fprintf(stderr, "no figure has '%s' in its name\n", plan.filter.c_str());
        return 2;
    }
    if (!json.empty()) write_json(json, figures);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "varve_bench: %s\n", error.what());
    return 1;
}
