// One seat of the bot, from the offer to the end of the match. Everything happens in the bot's thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "json.hpp"
#include "websocket.hpp"

class Bot;

// The match, and the number of the seat.
using SeatKey = std::pair<std::string, long long>;

class Seat : public std::enable_shared_from_this<Seat> {
public:
    Seat(Bot& bot, const Json& offer);

    // Sits down, or again after the link was lost. The answer is the whole view.
    void sit_down();
    void handle_item(const Json& item);
    // Does something after a while, unless the seat is closed by then.
    void later(double seconds, void (Seat::*act)());
    void close();

    const SeatKey key;
    Json offer;
    Target target;

private:
    void send(const std::string& action);
    void send_answer();
    void handle_update(const Json& update);
    void think(const Json& update);
    void answer(long long prompt, const std::string& move);
    void handle_rejection(const Json& rejected);
    void handle_end(const Json& ended);

    Bot& bot_;
    const std::string nonce_;  // stays the same over all links
    std::string receipt_;      // the newest that the referee sent
    long long asked_ = 0;      // the prompt that is being thought about or answered
    std::string answer_;       // the answer to it, until the referee has confirmed it
    int moves_ = 0;
};
