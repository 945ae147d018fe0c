#include "bot.hpp"

#include <iostream>
#include <stdexcept>

using Clock = std::chrono::steady_clock;

// The work of the bot's thread, by the time at which it is due.
struct Bot::WorkQueue {
    std::mutex mutex;
    std::condition_variable news;
    std::multimap<Clock::time_point, std::function<void()>> due;

    void add(Clock::time_point at, std::function<void()> work) {
        const std::lock_guard lock(mutex);
        due.emplace(at, std::move(work));
        news.notify_one();
    }

    std::function<void()> take() {
        std::unique_lock lock(mutex);
        while (due.empty() || due.begin()->first > Clock::now()) {
            if (due.empty()) {
                news.wait(lock);
            } else {
                news.wait_until(lock, due.begin()->first);
            }
        }
        return std::move(due.extract(due.begin()).mapped());
    }
};

Bot::Bot(Plan plan, Credentials credentials)
    : plan_(std::move(plan)), credentials_(std::move(credentials)), work_(std::make_shared<WorkQueue>()) {}

Stream::Post Bot::poster() const {
    return [work = work_](std::function<void()> what) { work->add(Clock::now(), std::move(what)); };
}

void Bot::post_later(double seconds, std::function<void()> work) {
    const auto wait = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    work_->add(Clock::now() + wait, std::move(work));
}

void Bot::run() {
    attendance_ = std::make_unique<Stream>(
        plan_.lobby, "/v1/attend", true, credentials_, poster(),
        Stream::Owner{[this] { send_limit(); }, [this](const Json& response) { handle_lobby(response); },
                      [this](const std::string& error) { final_end_ = error; }});
    while (!final_end_ && !(is_drained_ && seats_.empty())) {
        work_->take()();
        unused_links_.clear();  // not inside of their own work
    }
    links_.clear();
    attendance_.reset();
    if (final_end_) throw std::runtime_error(*final_end_);
}

void Bot::drain() {
    poster()([this] {
        std::cerr << "draining: " + std::to_string(seats_.size()) + " matches are open\n";
        is_draining_ = true;
        send_limit();
    });
}

// The lobby

void Bot::send_limit() {
    std::string queues;
    for (const auto& queue : plan_.queues) queues += (queues.empty() ? "" : ",") + quote(queue);
    attendance_->send("{\"queues\":[" + queues + "],\"maxMatches\":" + std::to_string(limit()) + "}");
}

long long Bot::limit() const {
    if (is_draining_) return 0;
    return plan_.matches ? std::min(plan_.max_matches, std::max(0LL, plan_.matches - finished_)) : plan_.max_matches;
}

void Bot::handle_lobby(const Json& response) {
    if (response.has("welcome")) {
        is_drained_ = is_draining_ && response["welcome"]["maxMatches"].number() == 0 && response["welcome"]["pendingSeats"].number() == 0;
    } else if (response.has("offer")) {
        handle_offer(response["offer"]);
    } else if (response.has("closed")) {
        // The referee's word of the end may have been lost: ask for it.
        const auto found = seats_.find({response["closed"]["match"].text(), response["closed"]["seat"].number()});
        if (found == seats_.end()) return;
        found->second->later(1, &Seat::sit_down);
        found->second->later(30, &Seat::close);
    } else if (response.has("takenOff")) {
        std::cerr << "off " + response["takenOff"]["queue"].text() + ": " + response["takenOff"]["reason"].text() + "\n";
    }
}

// Takes a seat, or moves it to the referee that has taken its match over.
void Bot::handle_offer(const Json& offer) {
    const SeatKey key{offer["match"].text(), offer["seat"].number()};
    const auto open = seats_.find(key);
    const bool is_known = open != seats_.end() && open->second->offer["epoch"].number() == offer["epoch"].number();
    if (past_.contains(key) || is_known || is_outdated(key.first, offer["epoch"].number())) return;
    if (open == seats_.end()) std::cerr << "seated in " + key.first + " at seat " + std::to_string(key.second) + "\n";
    auto& seat = open == seats_.end() ? seats_[key] = std::make_shared<Seat>(*this, offer) : open->second;
    const std::string& address = offer["wsAddress"].text();
    seat->offer = offer;
    seat->target = address.empty() ? plan_.lobby : Target::read(address);
    open_link(seat->target);
    seat->sit_down();
    close_links_without_seats();
}

// The referees

void Bot::open_link(const Target& target) {
    if (links_.contains(target)) return;
    links_[target] = std::make_unique<Stream>(
        target, "/v1/play", false, credentials_, poster(),
        Stream::Owner{[this, target] { handle_open_link(target); },
                      [this, target](const Json& response) { handle_referee(target, response); },
                      [this](const std::string& error) { final_end_ = error; }});
}

void Bot::handle_open_link(const Target& target) {
    for (const auto& [key, seat] : seats_)
        if (seat->target == target) seat->sit_down();
}

void Bot::handle_referee(const Target& target, const Json& response) {
    for (const Json& item : response["items"].items()) {
        if (item.has("ping")) {
            send_item(target, "{\"pong\":{\"number\":" + quote(item["ping"]["number"].text()) + "}}");
            continue;
        }
        const auto found = seats_.find({item["match"].text(), item["seat"].number()});
        if (found == seats_.end() || is_outdated(item["match"].text(), item["epoch"].number())) continue;
        const auto seat = found->second;  // it may close itself
        seat->handle_item(item);
    }
}

// Whether this epoch is older than one already seen; epoch 0 belongs to no owner. It notes the epoch.
bool Bot::is_outdated(const std::string& match, long long epoch) {
    long long& seen = epochs_[match];
    const bool is_older = epoch > 0 && epoch < seen;
    seen = std::max(seen, epoch);
    return is_older;
}

void Bot::send_item(const Target& target, const std::string& item) {
    if (const auto link = links_.find(target); link != links_.end()) link->second->send("{\"items\":[" + item + "]}");
}

// Seats

void Bot::close_seat(SeatKey key) {
    seats_.erase(key);
    past_.insert(key);
    close_links_without_seats();
    is_draining_ = is_draining_ || (plan_.matches && finished_ >= plan_.matches);
    send_limit();
}

void Bot::close_links_without_seats() {
    for (auto link = links_.begin(); link != links_.end();) {
        bool is_used = false;
        for (const auto& [key, seat] : seats_) is_used = is_used || seat->target == link->first;
        if (!is_used) unused_links_.push_back(std::move(link->second));
        link = is_used ? std::next(link) : links_.erase(link);
    }
}
