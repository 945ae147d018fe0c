#include "json.hpp"

#include <cctype>
#include <cstdio>
#include <stdexcept>

class JsonParser {
public:
    explicit JsonParser(std::string_view text) : text_(text) {}

    Json parse_document() {
        Json value = parse_value(0);
        skip_space();
        if (place_ != text_.size()) fail();
        return value;
    }

private:
    static constexpr int deepest = 50;

    [[noreturn]] void fail() const { throw std::runtime_error("no JSON at character " + std::to_string(place_)); }

    char next() { return place_ < text_.size() ? text_[place_++] : (fail(), '\0'); }

    void skip_space() {
        while (place_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[place_]))) ++place_;
    }

    // Takes this character if it is next.
    bool take(char wanted) {
        skip_space();
        if (place_ == text_.size() || text_[place_] != wanted) return false;
        ++place_;
        return true;
    }

    void expect(char wanted) {
        if (!take(wanted)) fail();
    }

    Json parse_value(int depth) {
        if (depth > deepest) fail();
        Json value;
        if (take('{')) {
            parse_fields(value, depth);
        } else if (take('[')) {
            while (!take(']')) {
                if (!value.items_.empty()) expect(',');
                value.items_.push_back(parse_value(depth + 1));
            }
        } else if (take('"')) {
            value.text_ = parse_text();
        } else {
            value.text_ = parse_word();
        }
        return value;
    }

    void parse_fields(Json& value, int depth) {
        while (!take('}')) {
            if (!value.fields_.empty()) expect(',');
            expect('"');
            std::string name = parse_text();
            expect(':');
            value.fields_[name] = parse_value(depth + 1);
        }
    }

    // A number, true, false or null.
    std::string parse_word() {
        const auto begin = place_;
        while (place_ < text_.size() && std::string_view("+-.").find(text_[place_]) != std::string_view::npos) ++place_;
        while (place_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[place_])) ||
                                         std::string_view("+-.").find(text_[place_]) != std::string_view::npos))
            ++place_;
        if (begin == place_) fail();
        auto word = std::string(text_.substr(begin, place_ - begin));
        return word == "null" ? "" : word;
    }

    std::string parse_text() {
        std::string text;
        for (char letter = next(); letter != '"'; letter = next()) text += letter == '\\' ? parse_escape() : std::string(1, letter);
        return text;
    }

    std::string parse_escape() {
        const char letter = next();
        switch (letter) {
            case 'n': return "\n";
            case 't': return "\t";
            case 'r': return "\r";
            case 'b': return "\b";
            case 'f': return "\f";
            case 'u': return parse_code_point();
            default: return std::string(1, letter);
        }
    }

    unsigned parse_hex() {
        std::string digits;
        for (int count = 0; count < 4; ++count) digits += next();
        return static_cast<unsigned>(std::stoul(digits, nullptr, 16));
    }

    // Returns UTF-8.
    std::string parse_code_point() {
        unsigned point = parse_hex();
        if (point >= 0xD800 && point < 0xDC00 && next() == '\\' && next() == 'u')
            point = 0x10000 + ((point - 0xD800) << 10) + (parse_hex() - 0xDC00);
        const auto last_bits = [&point](int shift) { return static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
        if (point < 0x80) return {static_cast<char>(point)};
        if (point < 0x800) return {static_cast<char>(0xC0 | (point >> 6)), last_bits(0)};
        if (point < 0x10000) return {static_cast<char>(0xE0 | (point >> 12)), last_bits(6), last_bits(0)};
        return {static_cast<char>(0xF0 | (point >> 18)), last_bits(12), last_bits(6), last_bits(0)};
    }

    std::string_view text_;
    std::size_t place_ = 0;
};

Json Json::parse(std::string_view text) { return JsonParser(text).parse_document(); }

const Json& Json::operator[](const std::string& name) const {
    static const Json nothing;
    const auto found = fields_.find(name);
    return found == fields_.end() ? nothing : found->second;
}

std::string quote(std::string_view text) {
    std::string quoted = "\"";
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') quoted += '\\';
        if (static_cast<unsigned char>(letter) >= 0x20) {
            quoted += letter;
        } else {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(letter));
            quoted += escape;
        }
    }
    return quoted + '"';
}
