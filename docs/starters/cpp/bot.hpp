// Attends the lobby, and keeps a link to each referee at which the bot has seats. Everything happens in the thread of `run`.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "seat.hpp"
#include "stream.hpp"

// The task of the bot.
struct Plan {
    Target lobby;
    std::vector<std::string> queues;
    long long max_matches = 4;
    long long matches = 0;  // the bot stops after so many; 0 means never
};

class Bot {
public:
    Bot(Plan plan, Credentials credentials);

    // Attends and plays until all is drained. Throws std::runtime_error for what no other attempt can mend.
    void run();
    // Takes no more seats, finishes the open matches, and ends.
    void drain();

    // Returns what brings work of other threads into the bot's. It may be called when the bot is gone.
    Stream::Post poster() const;
    void post_later(double seconds, std::function<void()> work);

    void send_item(const Target& target, const std::string& item);
    void count_match() { ++finished_; }
    void close_seat(SeatKey key);

private:
    struct WorkQueue;
    void send_limit();
    long long limit() const;
    void handle_lobby(const Json& response);
    void handle_offer(const Json& offer);
    void open_link(const Target& target);
    void handle_open_link(const Target& target);
    void handle_referee(const Target& target, const Json& response);
    bool is_outdated(const std::string& match, long long epoch);
    void close_links_without_seats();

    const Plan plan_;
    const Credentials credentials_;
    const std::shared_ptr<WorkQueue> work_;
    std::map<SeatKey, std::shared_ptr<Seat>> seats_;
    std::set<SeatKey> past_;
    std::map<std::string, long long> epochs_;  // the highest of each match
    std::map<Target, std::unique_ptr<Stream>> links_;
    std::vector<std::unique_ptr<Stream>> unused_links_;
    std::unique_ptr<Stream> attendance_;
    std::optional<std::string> final_end_;
    long long finished_ = 0;
    bool is_draining_ = false;
    bool is_drained_ = false;  // whether the lobby has confirmed that it offers no more seats
};
