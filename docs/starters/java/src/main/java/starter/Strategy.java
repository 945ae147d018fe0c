package starter;

import java.util.Comparator;
import seatwise.games.ugo.v1.Arrange;
import seatwise.games.ugo.v1.Card;
import seatwise.games.ugo.v1.Move;
import seatwise.games.ugo.v1.View;

/** Chooses the moves. This is the place for your own ideas. */
final class Strategy {
    private Strategy() {}

    /** Answers a prompt of UGO!. It runs beside the streams, so it may take as long as the clock allows. */
    static Move choose(String pace, View view) {
        if (pace.equals("arrange")) {
            return Move.newBuilder().setArrange(Arrange.newBuilder().addAllCards(view.getWonCardsList())).build();
        }
        Card lowest = view.getLegalCardsList().stream().min(Comparator.comparingInt(Strategy::valueOf)).orElseThrow();
        return Move.newBuilder().setPlay(lowest).build();
    }

    /** Returns the value of a card, 0 to 8. */
    private static int valueOf(Card card) {
        return (card.getNumber() - 1) % 9;
    }
}
