// A stream that is opened again whenever it ends, until it ends for good or is closed. A thread of its own serves it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "json.hpp"
#include "websocket.hpp"

// The secrets that the bot may tell a server, and the authority that it trusts.
struct Credentials {
    std::string token;
    std::string ca_file;
    bool may_travel_in_clear = false;
};

class Stream {
public:
    // The events that its owner hears. Each is called in the bot's thread: `post` brings it there.
    struct Owner {
        std::function<void()> handle_opened;
        std::function<void(Json)> handle_message;
        std::function<void(std::string)> handle_final_end;
    };
    using Post = std::function<void(std::function<void()>)>;

    Stream(Target target, std::string path, bool is_lobby, const Credentials& credentials, Post post, Owner owner);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Sends a message, or drops it while the stream is down: seats repeat what was not confirmed.
    void send(std::string message);

private:
    struct End;
    void keep_open();
    End run_once();
    void serve(WebSocket& socket, End& end);
    std::vector<std::string> take_outbox();
    // Posts something to the bot, unless the stream is closed by then.
    void tell(std::function<void()> what);
    bool wait(double seconds);
    void wake();

    const Target target_;
    const std::string path_;
    const bool is_lobby_;
    const Credentials& credentials_;
    const Post post_;
    const Owner owner_;
    const std::shared_ptr<std::atomic<bool>> is_closed_ = std::make_shared<std::atomic<bool>>(false);
    int wake_pipe_[2];
    std::mutex mutex_;
    bool is_open_ = false;
    std::vector<std::string> outbox_;
    std::thread thread_;
};
