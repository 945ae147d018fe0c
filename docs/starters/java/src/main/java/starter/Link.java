package starter;

import seatwise.v1.PlayRequest;
import seatwise.v1.PlayRequestItem;
import seatwise.v1.PlayResponse;
import seatwise.v1.PlayResponseItem;
import seatwise.v1.PlayServiceGrpc;
import seatwise.v1.Pong;

/** The stream to one referee. It carries all seats of the bot there. */
final class Link implements Stream.Listener<PlayResponse> {
    final Wire.Endpoint to;
    private final Bot bot;
    private final Stream<PlayRequest, PlayResponse> stream;
    private boolean isStarted;

    Link(Bot bot, Wire wire, Wire.Endpoint to) {
        this.bot = bot;
        this.to = to;
        stream = new Stream<>("referee " + to.target(), false, wire, to, bot.thread, this,
                (channel, answers) -> PlayServiceGrpc.newStub(channel).play(answers));
    }

    /** Lets a new seat sit down: at once, or with all others when the stream is open. */
    void openOrSit(Seat seat) {
        if (isStarted) {
            seat.sitDown();
        } else {
            isStarted = true;
            stream.open();
        }
    }

    void close() {
        stream.close();
    }

    void send(PlayRequestItem item) {
        stream.send(PlayRequest.newBuilder().addItems(item).build());
    }

    @Override
    public void handleOpened() {
        bot.seatsAt(this).forEach(Seat::sitDown);
    }

    @Override
    public void handleAnswer(PlayResponse response) {
        for (PlayResponseItem item : response.getItemsList()) {
            if (item.hasPing()) {
                Pong pong = Pong.newBuilder().setNumber(item.getPing().getNumber()).build();
                send(PlayRequestItem.newBuilder().setPong(pong).build());
            } else {
                bot.seatOf(new Seat.Key(item.getMatch(), item.getSeat())).ifPresent(seat -> seat.handleItem(item));
            }
        }
    }

    @Override
    public void handleFinalEnd(Throwable error) {
        bot.fail(error);
    }
}
