// Chooses the moves. This is the place for your own ideas.
#include "strategy.hpp"

#include <algorithm>

namespace {

// Returns the value of a card, 0 to 8: CARD_R5 has the value 5.
char value_of(const Json& card) { return card.text().back(); }

}  // namespace

std::string choose(const std::string& pace, const Json& view) {
    if (pace == "arrange") {
        auto won = view["wonCards"].items();
        std::ranges::stable_sort(won, {}, value_of);
        std::string cards;
        for (const Json& card : won) cards += (cards.empty() ? "" : ",") + quote(card.text());
        return "{\"arrange\":{\"cards\":[" + cards + "]}}";
    }
    const auto& legal = view["legalCards"].items();
    const auto highest = std::ranges::max_element(legal, {}, value_of);
    return "{\"play\":" + quote(highest->text()) + "}";
}
