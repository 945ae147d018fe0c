package starter;

import java.util.Comparator;
import java.util.List;
import seatwise.games.ugo.v1.Arrange;
import seatwise.games.ugo.v1.Card;
import seatwise.games.ugo.v1.Move;
import seatwise.games.ugo.v1.View;

/** Chooses the moves. This is the place for your own ideas. */
final class Strategy {
    private Strategy() {}

    /**
     * Answers a prompt of UGO!: plays the highest card, and lays the highest on top. It runs beside the streams, so it may
     * take as long as the clock allows.
     */
    static Move choose(String pace, View view) {
        if (pace.equals("arrange")) {
            List<Card> rising = view.getWonCardsList().stream().sorted(Comparator.comparingInt(Strategy::valueOf)).toList();
            return Move.newBuilder().setArrange(Arrange.newBuilder().addAllCards(rising)).build();
        }
        Card highest = view.getLegalCardsList().stream().max(Comparator.comparingInt(Strategy::valueOf)).orElseThrow();
        return Move.newBuilder().setPlay(highest).build();
    }

    /** Returns the value of a card, 0 to 8. */
    private static int valueOf(Card card) {
        return (card.getNumber() - 1) % 9;
    }
}
