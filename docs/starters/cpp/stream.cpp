#include "stream.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>
#include <set>
#include <utility>

using Clock = std::chrono::steady_clock;

namespace {

constexpr double first_wait_s = 0.1;
constexpr double longest_wait_s = 5.0;
constexpr auto silence = std::chrono::seconds(10);  // a referee sends a ping every two seconds

const std::set<std::string> final_codes = {"UNAUTHENTICATED", "PERMISSION_DENIED"};
const std::set<std::string> final_at_lobby = {"NOT_FOUND",           "INVALID_ARGUMENT", "OUT_OF_RANGE", "ALREADY_EXISTS",
                                              "FAILED_PRECONDITION", "UNIMPLEMENTED"};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double random_below(double bound) {
    static thread_local std::mt19937_64 generator(std::random_device{}());
    return std::uniform_real_distribution<>(0, bound)(generator);
}

}  // namespace

// The end of a stream, with the reason that the server gave, if it gave one.
struct Stream::End {
    std::string message = "the connection broke";
    std::string code = "UNAVAILABLE";
    std::string reason;
    double retry_after_s = 0;

    // Reads the error of AIP-193.
    void read(const Json& error) {
        message = error["message"].text();
        code = error["status"].text();
        if (error["details"].items().empty()) return;
        const Json& info = error["details"].items().front();
        reason = info["reason"].text();
        const std::string& seconds = info["metadata"]["retry_after"].text();
        retry_after_s = seconds.empty() ? 0 : std::stod(seconds);
    }

    // Whether another attempt must not be made: the table "When to reconnect" of docs/protocol.md.
    bool is_final(bool is_lobby) const {
        return reason == "REPLACED" || final_codes.contains(code) || (is_lobby && final_at_lobby.contains(code));
    }
};

Stream::Stream(Target target, std::string path, bool is_lobby, const Credentials& credentials, Post post, Owner owner)
    : target_(std::move(target)), path_(std::move(path)), is_lobby_(is_lobby), credentials_(credentials), post_(std::move(post)),
      owner_(std::move(owner)) {
    if (pipe2(wake_pipe_, O_NONBLOCK | O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    thread_ = std::thread([this] { keep_open(); });
}

Stream::~Stream() {
    *is_closed_ = true;
    wake();
    thread_.join();
    close(wake_pipe_[0]);
    close(wake_pipe_[1]);
}

void Stream::send(std::string message) {
    const std::lock_guard lock(mutex_);
    if (!is_open_) return;
    outbox_.push_back(std::move(message));
    wake();
}

void Stream::wake() {
    if (write(wake_pipe_[1], "w", 1) < 0) return;  // full: it wakes up anyway
}

void Stream::tell(std::function<void()> what) {
    post_([is_closed = is_closed_, what = std::move(what)] {
        if (!*is_closed) what();
    });
}

void Stream::keep_open() {
    for (int failures = 0; !*is_closed_;) {
        const auto began = Clock::now();
        const End end = run_once();
        if (*is_closed_) return;
        if (end.is_final(is_lobby_)) {
            tell([this, text = end.message + " [" + end.reason + "]"] { owner_.handle_final_end(text); });
            return;
        }
        failures = seconds_since(began) > longest_wait_s ? 0 : failures + 1;
        std::cerr << target_.address() + path_ + ": " + end.message + "; coming again\n";
        const double bound = std::min(longest_wait_s, first_wait_s * (1 << std::min(failures, 10)));
        if (wait(end.retry_after_s + random_below(bound))) return;
    }
}

// Returns whether the stream was closed meanwhile.
bool Stream::wait(double seconds) {
    const auto began = Clock::now();
    while (!*is_closed_ && seconds_since(began) < seconds) {
        pollfd wanted{wake_pipe_[0], POLLIN, 0};
        poll(&wanted, 1, std::max(1, static_cast<int>(1000 * (seconds - seconds_since(began)))));
        take_outbox();
    }
    return *is_closed_;
}

Stream::End Stream::run_once() {
    End end;
    if (target_.scheme == "ws" && !credentials_.may_travel_in_clear && !target_.is_this_machine()) {
        end.message = "the token would travel in clear; use wss://, or --insecure";
        end.code = "UNAUTHENTICATED";
        return end;
    }
    try {
        WebSocket socket(target_, path_, credentials_.token, credentials_.ca_file);
        serve(socket, end);
    } catch (const std::exception& error) {
        const std::string text = error.what();
        if (text.starts_with('{')) {
            end.read(Json::parse(text)["error"]);
        } else if (end.reason.empty()) {
            end.message = text;
        }
    }
    const std::lock_guard lock(mutex_);
    is_open_ = false;
    return end;
}

// Reads and writes until the socket ends, which is an exception, or the stream is closed.
void Stream::serve(WebSocket& socket, End& end) {
    {
        const std::lock_guard lock(mutex_);
        is_open_ = true;
        outbox_.clear();
    }
    tell([this] { owner_.handle_opened(); });
    auto heard_at = Clock::now();
    while (!*is_closed_) {
        while (auto message = socket.next_message()) {
            heard_at = Clock::now();
            Json json = Json::parse(*message);
            if (json.has("error")) {
                end.read(json["error"]);
            } else {
                tell([this, json = std::move(json)] { owner_.handle_message(json); });
            }
        }
        if (!is_lobby_ && Clock::now() - heard_at > silence) throw std::runtime_error("nothing was heard");
        pollfd wanted[] = {{socket.descriptor(), POLLIN, 0}, {wake_pipe_[0], POLLIN, 0}};
        poll(wanted, 2, 1'000);
        for (const auto& message : take_outbox()) socket.send_text(message);
        if (wanted[0].revents) socket.read_available();
    }
}

std::vector<std::string> Stream::take_outbox() {
    char ignored[64];
    while (read(wake_pipe_[0], ignored, sizeof ignored) > 0) {
    }
    const std::lock_guard lock(mutex_);
    return std::exchange(outbox_, {});
}
