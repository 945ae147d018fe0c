#include "websocket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace {

constexpr int patience_ms = 5'000;
constexpr std::size_t longest_head = 16'384;
constexpr std::size_t largest_message = 16 << 20;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::string tls_error(SSL* tls) {
    const long verified = SSL_get_verify_result(tls);
    if (verified != X509_V_OK) return std::string("TLS: the certificate is not trusted: ") + X509_verify_cert_error_string(verified);
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    return std::string("TLS: ") + (reason ? reason : "the connection broke");
}

std::string random_bytes(int count) {
    std::string bytes(count, '\0');
    RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), count);
    return bytes;
}

std::string to_base64(const std::string& bytes) {
    std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
    const auto* from = reinterpret_cast<const unsigned char*>(bytes.data());
    text.resize(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), from, static_cast<int>(bytes.size())));
    return text;
}

}  // namespace

Target Target::read(const std::string& address) {
    Target target;
    std::string rest = address;
    if (const auto mark = rest.find("://"); mark != std::string::npos) {
        target.scheme = rest.substr(0, mark);
        rest = rest.substr(mark + 3);
    }
    if (const auto slash = rest.find('/'); slash != std::string::npos) {
        target.base_path = rest.substr(slash);
        while (target.base_path.ends_with('/')) target.base_path.pop_back();
        rest = rest.substr(0, slash);
    }
    const auto colon = rest.rfind(':');
    if (colon == std::string::npos) fail(address + " names no port");
    target.host = rest.substr(0, colon);
    target.port = rest.substr(colon + 1);
    if (target.scheme.empty()) target.scheme = target.is_this_machine() ? "ws" : "wss";
    if (target.scheme != "ws" && target.scheme != "wss") fail(address + " is neither ws:// nor wss://");
    return target;
}

bool Target::is_this_machine() const { return host == "localhost" || host == "127.0.0.1" || host == "[::1]"; }

WebSocket::WebSocket(const Target& target, const std::string& path, const std::string& token, const std::string& ca_file) {
    try {
        connect(target);
        if (target.scheme == "wss") start_tls(target, ca_file);
        upgrade(target, path, token);
    } catch (...) {
        if (descriptor_ >= 0) close(descriptor_);
        throw;
    }
}

WebSocket::~WebSocket() {
    if (tls_) SSL_shutdown(tls_.get());
    close(descriptor_);
}

void WebSocket::connect(const Target& target) {
    std::string host = target.host;
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(host.c_str(), target.port.c_str(), &hints, &found)) fail(gai_strerror(error));
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
    for (const addrinfo* each = found; each; each = each->ai_next) {
        descriptor_ = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (::connect(descriptor_, each->ai_addr, each->ai_addrlen) != 0 && errno != EINPROGRESS) {
            close(std::exchange(descriptor_, -1));
            continue;
        }
        wait_for(POLLOUT);
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error == 0) {
            const int on = 1;
            setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return;
        }
        errno = error;
        close(std::exchange(descriptor_, -1));
    }
    fail(std::string("cannot connect: ") + std::strerror(errno));
}

void WebSocket::start_tls(const Target& target, const std::string& ca_file) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (ca_file.empty() ? !SSL_CTX_set_default_verify_paths(context_.get())
                        : !SSL_CTX_load_verify_locations(context_.get(), ca_file.c_str(), nullptr))
        fail("TLS: " + ca_file + " holds no certificate");
    tls_.reset(SSL_new(context_.get()));
    SSL_set_fd(tls_.get(), descriptor_);
    SSL_set_tlsext_host_name(tls_.get(), target.host.c_str());
    auto* parameters = SSL_get0_param(tls_.get());
    if (!X509_VERIFY_PARAM_set1_ip_asc(parameters, target.host.c_str())) SSL_set1_host(tls_.get(), target.host.c_str());
    for (int done; (done = SSL_connect(tls_.get())) != 1;) {
        const int error = SSL_get_error(tls_.get(), done);
        if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) fail(tls_error(tls_.get()));
        wait_for(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT);
    }
}

void WebSocket::upgrade(const Target& target, const std::string& path, const std::string& token) {
    write_all("GET " + target.base_path + path + " HTTP/1.1\r\nHost: " + target.host + ":" + target.port +
              "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
              to_base64(random_bytes(16)) + "\r\nSec-WebSocket-Protocol: seatwise.v1.json\r\nAuthorization: Bearer " + token +
              "\r\n\r\n");
    char buffer[4096];
    std::size_t end;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
        if (received_.size() > longest_head) fail("the answer is no WebSocket's");
        const std::size_t size = read_some(buffer, sizeof buffer);
        if (size == 0) wait_for(POLLIN);
        received_.append(buffer, size);
    }
    const std::string head = received_.substr(0, end);
    received_.erase(0, end + 4);
    if (!head.starts_with("HTTP/1.1 101 ")) fail(received_.starts_with('{') ? received_ : head.substr(0, head.find('\r')));
}

void WebSocket::read_available() {
    char buffer[65536];
    for (std::size_t size; (size = read_some(buffer, sizeof buffer)) > 0;) received_.append(buffer, size);
}

// Frames of RFC 6455. A server does not mask its frames.
std::optional<std::string> WebSocket::next_message() {
    while (received_.size() >= 2) {
        const auto byte = [this](std::size_t place) { return static_cast<unsigned char>(received_[place]); };
        std::size_t size = byte(1) & 0x7F;
        const std::size_t digits = size == 126 ? 2 : size == 127 ? 8 : 0;
        if (received_.size() < 2 + digits) break;
        if (digits) size = 0;
        for (std::size_t place = 0; place < digits; ++place) size = size << 8 | byte(2 + place);
        if (size > largest_message) fail("a message is too large");
        if (received_.size() < 2 + digits + size) break;
        const bool is_last = byte(0) & 0x80;
        const unsigned opcode = byte(0) & 0x0F;
        std::string payload = received_.substr(2 + digits, size);
        received_.erase(0, 2 + digits + size);
        if (opcode == 0x8) fail("the server closed the stream " + (payload.size() > 2 ? payload.substr(2) : ""));
        if (opcode == 0x9) send_frame(0xA, payload);
        if (opcode >= 0x8) continue;
        fragments_ += payload;
        if (is_last) return std::exchange(fragments_, "");
    }
    return std::nullopt;
}

void WebSocket::send_frame(unsigned char opcode, const std::string& payload) {
    std::string frame{static_cast<char>(0x80 | opcode)};
    if (payload.size() < 126) {
        frame += static_cast<char>(0x80 | payload.size());
    } else {
        const bool is_short = payload.size() < 65'536;
        frame += static_cast<char>(0x80 | (is_short ? 126 : 127));
        for (int shift = is_short ? 8 : 56; shift >= 0; shift -= 8) frame += static_cast<char>(payload.size() >> shift & 0xFF);
    }
    const std::string mask = random_bytes(4);
    frame += mask;
    for (std::size_t place = 0; place < payload.size(); ++place) frame += static_cast<char>(payload[place] ^ mask[place % 4]);
    write_all(frame);
}

std::size_t WebSocket::read_some(char* buffer, std::size_t size) {
    if (tls_) {
        const int count = SSL_read(tls_.get(), buffer, static_cast<int>(size));
        if (count > 0) return static_cast<std::size_t>(count);
        const int error = SSL_get_error(tls_.get(), count);
        if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return 0;
        fail(tls_error(tls_.get()));
    }
    const ssize_t count = recv(descriptor_, buffer, size, 0);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    fail(count == 0 ? "the server hung up" : std::strerror(errno));
}

void WebSocket::write_all(const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
        ssize_t count;
        if (tls_) {
            count = SSL_write(tls_.get(), bytes.data() + sent, static_cast<int>(bytes.size() - sent));
            const int error = count > 0 ? SSL_ERROR_NONE : SSL_get_error(tls_.get(), static_cast<int>(count));
            if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
                wait_for(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT);
                continue;
            }
            if (count <= 0) fail(tls_error(tls_.get()));
        } else if ((count = send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL)) < 0) {
            if (errno != EAGAIN && errno != EINTR) fail(std::strerror(errno));
            wait_for(POLLOUT);
            continue;
        }
        sent += static_cast<std::size_t>(count);
    }
}

void WebSocket::wait_for(short events) {
    pollfd wanted{descriptor_, events, 0};
    if (poll(&wanted, 1, patience_ms) == 0) fail("the server does not answer");
}
