// A whole Seatwise bot: it attends a queue, plays UGO! over WebSocket, and survives lost links. Your own ideas go into strategy.cpp.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>

#include "bot.hpp"

namespace {

constexpr const char* help = R"(--address ADDRESS   the server's WebSocket port: ws://host:port or wss://host:port
--queue NAMES       the queues to wait in, with commas between them; empty for matches that name the bot
--max-matches N     play at most so many matches at once
--matches N         stop after so many matches; 0 means never
--tls-ca FILE       a file with the CAs to trust, or the server's own certificate
--insecure          let the token travel in clear to another machine
The environment variable SEATWISE_TOKEN holds the bot's token.
)";

std::map<std::string, std::string> read_options(int count, char** arguments) {
    std::map<std::string, std::string> options{{"--address", "ws://localhost:7481"}, {"--queue", "casual"},
                                               {"--max-matches", "4"},               {"--matches", "0"}};
    for (int place = 1; place < count; ++place) {
        const std::string name = arguments[place];
        const bool is_flag = name == "--insecure" || name == "--help" || place + 1 == count;
        options[name] = is_flag ? "" : arguments[++place];
    }
    return options;
}

std::vector<std::string> split_names(const std::string& names) {
    std::vector<std::string> found;
    std::istringstream stream(names);
    for (std::string name; std::getline(stream, name, ',');)
        if (!name.empty()) found.push_back(name);
    return found;
}

// Finishes the open matches after the first Ctrl-C, and leaves at once after the second.
void drain_on_signal(Bot& bot, sigset_t signals) {
    int number;
    sigwait(&signals, &number);
    bot.drain();
    sigwait(&signals, &number);
    _exit(1);
}

}  // namespace

int main(int count, char** arguments) {
    auto options = read_options(count, arguments);
    const char* token = std::getenv("SEATWISE_TOKEN");
    if (options.contains("--help") || !token || !*token) {
        std::cerr << help;
        return 2;
    }
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // in all threads: one of them waits for signals
    signal(SIGPIPE, SIG_IGN);
    try {
        const Plan plan{Target::read(options["--address"]), split_names(options["--queue"]), std::stoll(options["--max-matches"]),
                        std::stoll(options["--matches"])};
        Bot bot(plan, {token, options["--tls-ca"], options.contains("--insecure")});
        std::thread(drain_on_signal, std::ref(bot), signals).detach();
        bot.run();
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        _exit(1);
    }
    _exit(0);  // a strategy that still computes is not waited for
}
