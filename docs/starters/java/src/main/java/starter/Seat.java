package starter;

import com.google.protobuf.ByteString;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.UUID;
import seatwise.games.ugo.v1.Move;
import seatwise.v1.MatchEnded;
import seatwise.v1.MoveRejected;
import seatwise.v1.PlayRequestItem;
import seatwise.v1.PlayResponseItem;
import seatwise.v1.SeatOffer;
import seatwise.v1.Sit;
import seatwise.v1.SubmitMove;
import seatwise.v1.Update;

/** One seat of the bot, from the offer to the end of the match. */
final class Seat {
    /** Names a seat of a match. */
    record Key(String match, int seat) {}

    private static final long AGAIN_MS = 500;

    final Key key;
    SeatOffer offer;
    Link link;
    private final Bot bot;
    private final ByteString nonce;
    private ByteString receipt = ByteString.EMPTY;
    private int asked;
    private SubmitMove answer;
    private int moves;

    Seat(Bot bot, SeatOffer offer) {
        this.bot = bot;
        this.offer = offer;
        key = new Key(offer.getMatch(), offer.getSeat());
        byte[] random = new byte[32];
        new SecureRandom().nextBytes(random);
        nonce = ByteString.copyFrom(random); // stays the same over all links
    }

    /** Sits down, or again after the link was lost. The answer is the whole view. */
    void sitDown() {
        send(PlayRequestItem.newBuilder().setSit(Sit.newBuilder().setNonce(nonce).setReceipt(receipt)));
    }

    private void send(PlayRequestItem.Builder item) {
        link.send(item.setMatch(key.match()).setSeat(key.seat()).build());
    }

    private void sendAnswer() {
        if (answer != null) {
            send(PlayRequestItem.newBuilder().setSubmitMove(answer));
        }
    }

    /** Handles an item of the referee. Items of an earlier owner of the match are dropped. */
    void handleItem(PlayResponseItem item) {
        if (bot.isOutdated(key.match(), item.getEpoch())) {
            return;
        }
        switch (item.getEventCase()) {
            case UPDATE -> handleUpdate(item.getUpdate());
            case MOVE_ACCEPTED -> {
                keepReceipt(item.getMoveAccepted().getReceipt());
                moves++;
            }
            case MOVE_REJECTED -> handleRejection(item.getMoveRejected());
            case MATCH_ENDED -> handleEnd(item.getMatchEnded());
            default -> {}
        }
    }

    private void keepReceipt(ByteString newest) {
        receipt = newest.isEmpty() ? receipt : newest;
    }

    private void handleUpdate(Update update) {
        keepReceipt(update.getReceipt());
        if (!update.getToAct()) {
            asked = 0;
            answer = null;
        } else if (update.getPrompt() == asked) {
            sendAnswer(); // it may have been lost: the same bytes with the same request_id are never played twice
        } else {
            asked = update.getPrompt();
            answer = null;
            bot.think(() -> Strategy.choose(update.getPace(), update.getUgo()), move -> answer(update.getPrompt(), move));
        }
    }

    private void answer(int prompt, Move move) {
        if (asked == prompt) {
            answer = SubmitMove.newBuilder()
                    .setRequestId(UUID.randomUUID().toString())
                    .setPrompt(prompt)
                    .setUgo(move)
                    .build();
            sendAnswer();
        }
    }

    private void handleRejection(MoveRejected rejected) {
        System.err.println(key.match() + ": rejected: " + rejected.getMessage() + " [" + rejected.getReason() + "]");
        switch (rejected.getReason()) {
            case REASON_NOT_YOUR_SEAT -> bot.closeSeat(this);
            case REASON_NOT_SEATED, REASON_NOT_HERE, REASON_MATCH_OVER -> bot.later(AGAIN_MS, this, this::sitDown);
            case REASON_TOO_MANY -> bot.later(AGAIN_MS, this, this::sendAnswer);
            default -> answer = null; // a fault of the strategy, or too late: the default move is played when the time is over
        }
    }

    private void handleEnd(MatchEnded ended) {
        if (!ended.getSeed().isEmpty() && !sha256(ended.getSeed()).equals(offer.getCommitment())) {
            System.err.println(key.match() + ": the seed is not the one that the server was committed to");
        }
        System.err.println(key.match() + ": " + (ended.hasResult()
                ? "rank " + ended.getResult().getRanks(key.seat()) + " of " + ended.getResult().getPointsList()
                : "void (" + ended.getVoidReason() + ")") + ", " + moves + " moves");
        bot.countMatch();
        bot.closeSeat(this);
    }

    private static ByteString sha256(ByteString bytes) {
        try {
            return ByteString.copyFrom(MessageDigest.getInstance("SHA-256").digest(bytes.toByteArray()));
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
