// JSON, as much as the protocol needs of it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

class Json {
public:
    // Reads a text. Throws std::runtime_error if it is no JSON.
    static Json parse(std::string_view text);

    // Returns the value of a field; an empty value if this is no object, or has no such field.
    const Json& operator[](const std::string& name) const;

    bool has(const std::string& name) const { return fields_.contains(name); }
    const std::vector<Json>& items() const { return items_; }
    // The characters of a text, or the digits of a number.
    const std::string& text() const { return text_; }
    // A whole number, also where it is written as a text.
    long long number() const { return text_.empty() ? 0 : std::stoll(text_); }
    bool truth() const { return text_ == "true"; }

private:
    friend class JsonParser;
    std::string text_;
    std::vector<Json> items_;
    std::map<std::string, Json> fields_;
};

// Returns a text in quotation marks.
std::string quote(std::string_view text);
