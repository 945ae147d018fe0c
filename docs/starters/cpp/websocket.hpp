// One WebSocket: plain or by TLS, opened, read and written by a single thread.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

// ws://host:port or wss://host:port, and what the server is to be told and trusted with.
struct Target {
    std::string scheme;
    std::string host;
    std::string port;
    std::string base_path;  // where a proxy serves the WebSockets, if it does not at the root

    // Reads an address. Without a scheme it is TLS to another machine, and plain text to this one.
    static Target read(const std::string& address);
    bool is_this_machine() const;
    std::string address() const { return scheme + "://" + host + ":" + port + base_path; }
    auto operator<=>(const Target&) const = default;
};

class WebSocket {
public:
    // Connects and upgrades, within seconds. Throws std::runtime_error; its text is the body of a refused upgrade.
    WebSocket(const Target& target, const std::string& path, const std::string& token, const std::string& ca_file);
    ~WebSocket();
    WebSocket(const WebSocket&) = delete;
    WebSocket& operator=(const WebSocket&) = delete;

    int descriptor() const { return descriptor_; }
    // Reads what has arrived, and answers pings of the transport. Throws std::runtime_error when the socket is closed.
    void read_available();
    // Returns the next whole message that has arrived.
    std::optional<std::string> next_message();
    void send_text(const std::string& text) { send_frame(0x1, text); }

private:
    void connect(const Target& target);
    void start_tls(const Target& target, const std::string& ca_file);
    void upgrade(const Target& target, const std::string& path, const std::string& token);
    // Returns the bytes that were read; 0 if there are none yet.
    std::size_t read_some(char* buffer, std::size_t size);
    void write_all(const std::string& bytes);
    void wait_for(short events);
    void send_frame(unsigned char opcode, const std::string& payload);

    int descriptor_ = -1;
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, SSL_CTX_free};
    std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, SSL_free};
    std::string received_;
    std::string fragments_;
};
