#pragma once

#include <string>

#include "json.hpp"

// Answers a prompt of UGO!: seatwise.games.ugo.v1.View as JSON to seatwise.games.ugo.v1.Move as JSON. It runs in a thread
// beside the streams, so it may take as long as the clock allows.
std::string choose(const std::string& pace, const Json& view);
