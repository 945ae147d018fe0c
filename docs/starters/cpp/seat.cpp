#include "seat.hpp"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <iostream>
#include <thread>

#include "bot.hpp"
#include "strategy.hpp"

namespace {

constexpr double again_s = 0.5;

std::string base64(const unsigned char* bytes, int count) {
    std::string text(4 * ((count + 2) / 3) + 1, '\0');
    text.resize(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes, count));
    return text;
}

std::string random_base64(int count) {
    std::string bytes(count, '\0');
    RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), count);
    return base64(reinterpret_cast<const unsigned char*>(bytes.data()), count);
}

// Returns the SHA-256 of 32 bytes, both as base64.
std::string digest_of_seed(const std::string& seed) {
    unsigned char bytes[64], digest[SHA256_DIGEST_LENGTH];
    if (seed.size() != 44) return "";
    EVP_DecodeBlock(bytes, reinterpret_cast<const unsigned char*>(seed.data()), static_cast<int>(seed.size()));
    SHA256(bytes, 32, digest);
    return base64(digest, sizeof digest);
}

}  // namespace

Seat::Seat(Bot& bot, const Json& offered)
    : key(offered["match"].text(), offered["seat"].number()), offer(offered), bot_(bot), nonce_(random_base64(32)) {}

void Seat::sit_down() { send("\"sit\":{\"nonce\":" + quote(nonce_) + ",\"receipt\":" + quote(receipt_) + "}"); }

void Seat::send(const std::string& action) {
    bot_.send_item(target, "{\"match\":" + quote(key.first) + ",\"seat\":" + std::to_string(key.second) + "," + action + "}");
}

void Seat::send_answer() {
    if (!answer_.empty()) send("\"submitMove\":" + answer_);
}

void Seat::handle_item(const Json& item) {
    if (item.has("update")) {
        handle_update(item["update"]);
    } else if (item.has("moveAccepted")) {
        if (const auto& receipt = item["moveAccepted"]["receipt"].text(); !receipt.empty()) receipt_ = receipt;
        ++moves_;
    } else if (item.has("moveRejected")) {
        handle_rejection(item["moveRejected"]);
    } else if (item.has("matchEnded")) {
        handle_end(item["matchEnded"]);
    }
}

void Seat::handle_update(const Json& update) {
    if (const auto& receipt = update["receipt"].text(); !receipt.empty()) receipt_ = receipt;
    if (!update["toAct"].truth()) {
        asked_ = 0;
        answer_.clear();
    } else if (update["prompt"].number() == asked_) {
        send_answer();  // it may have been lost: the same move with the same requestId is never played twice
    } else {
        asked_ = update["prompt"].number();
        answer_.clear();
        think(update);
    }
}

// Computes beside the streams, so that pings are answered meanwhile.
void Seat::think(const Json& update) {
    std::thread([self = weak_from_this(), post = bot_.poster(), update] {
        const std::string move = choose(update["pace"].text(), update["ugo"]);
        post([self, prompt = update["prompt"].number(), move] {
            if (const auto seat = self.lock()) seat->answer(prompt, move);
        });
    }).detach();
}

void Seat::answer(long long prompt, const std::string& move) {
    if (asked_ != prompt) return;
    answer_ = "{\"requestId\":" + quote(random_base64(18)) + ",\"prompt\":" + std::to_string(prompt) + ",\"ugo\":" + move + "}";
    send_answer();
}

void Seat::handle_rejection(const Json& rejected) {
    const std::string& reason = rejected["reason"].text();
    std::cerr << key.first + ": rejected: " + rejected["message"].text() + " [" + reason + "]\n";
    if (reason == "REASON_NOT_YOUR_SEAT") {
        close();
    } else if (reason == "REASON_NOT_SEATED" || reason == "REASON_NOT_HERE" || reason == "REASON_MATCH_OVER") {
        later(again_s, &Seat::sit_down);
    } else if (reason == "REASON_TOO_MANY") {
        later(again_s, &Seat::send_answer);
    } else {
        answer_.clear();  // a fault of the strategy, or too late: the referee plays the default move when the time is over
    }
}

void Seat::handle_end(const Json& ended) {
    const std::string& seed = ended["seed"].text();
    if (!seed.empty() && digest_of_seed(seed) != offer["commitment"].text())
        std::cerr << key.first + ": the seed is not the one that the server was committed to\n";
    std::string how = "void (" + ended["voidReason"].text() + ")";
    if (ended.has("result")) how = "rank " + ended["result"]["ranks"].items().at(key.second).text();
    std::cerr << key.first + ": " + how + ", " + std::to_string(moves_) + " moves\n";
    bot_.count_match();
    close();
}

void Seat::later(double seconds, void (Seat::*act)()) {
    bot_.post_later(seconds, [self = weak_from_this(), act] {
        if (const auto seat = self.lock()) (seat.get()->*act)();
    });
}

void Seat::close() { bot_.close_seat(key); }
