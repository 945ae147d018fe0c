package starter;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import seatwise.v1.AttendRequest;
import seatwise.v1.AttendResponse;
import seatwise.v1.LobbyServiceGrpc;
import seatwise.v1.SeatOffer;

/** Attends the lobby and keeps a link to each referee at which it has seats. All of it happens in one thread. */
final class Bot implements Stream.Listener<AttendResponse> {
    final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor();
    private final ExecutorService thinking = Executors.newCachedThreadPool();
    private final CompletableFuture<Void> end = new CompletableFuture<>();
    private final Wire wire;
    private final Wire.Endpoint lobby;
    private final List<String> queues;
    private final int maxMatches;
    private final int matches;
    private final Stream<AttendRequest, AttendResponse> attendance;
    private final Map<Seat.Key, Seat> seats = new HashMap<>();
    private final Set<Seat.Key> past = new HashSet<>();
    private final Map<Wire.Endpoint, Link> links = new HashMap<>();
    private final Map<String, Long> epochs = new HashMap<>();
    private int finished;
    private boolean isDraining;
    private boolean isDrained;

    Bot(Wire wire, Wire.Endpoint lobby, List<String> queues, int maxMatches, int matches) {
        this.wire = wire;
        this.lobby = lobby;
        this.queues = queues;
        this.maxMatches = maxMatches;
        this.matches = matches;
        attendance = new Stream<>("lobby", true, wire, lobby, thread, this,
                (channel, answers) -> LobbyServiceGrpc.newStub(channel).attend(answers));
    }

    /** Attends and plays until all is drained. The future fails with an error that no other attempt can mend. */
    CompletableFuture<Void> run() {
        thread.execute(attendance::open);
        return end;
    }

    /** Takes no more seats, finishes the open matches, and ends. */
    void drain() {
        thread.execute(() -> {
            System.err.println("draining: " + seats.size() + " matches are open");
            isDraining = true;
            sendLimit();
        });
    }

    void fail(Throwable error) {
        end.completeExceptionally(error);
    }

    // The lobby

    @Override
    public void handleOpened() {
        sendLimit();
    }

    private void sendLimit() {
        attendance.send(AttendRequest.newBuilder().addAllQueues(queues).setMaxMatches(limit()).build());
    }

    private int limit() {
        if (isDraining) {
            return 0;
        }
        return matches > 0 ? Math.min(maxMatches, Math.max(0, matches - finished)) : maxMatches;
    }

    @Override
    public void handleFinalEnd(Throwable error) {
        fail(error);
    }

    @Override
    public void handleAnswer(AttendResponse response) {
        switch (response.getEventCase()) {
            case WELCOME -> {
                isDrained = isDraining && response.getWelcome().getMaxMatches() == 0 && response.getWelcome().getPendingSeats() == 0;
                endIfDone();
            }
            case OFFER -> handleOffer(response.getOffer());
            case CLOSED -> handleClosed(new Seat.Key(response.getClosed().getMatch(), response.getClosed().getSeat()));
            case TAKEN_OFF -> System.err.println("off " + response.getTakenOff().getQueue() + ": " + response.getTakenOff().getReason());
            default -> {}
        }
    }

    /** Takes a seat, or moves it to the referee that has taken its match over. */
    private void handleOffer(SeatOffer offer) {
        Seat.Key key = new Seat.Key(offer.getMatch(), offer.getSeat());
        Seat open = seats.get(key);
        boolean isKnown = open != null && open.offer.getEpoch() == offer.getEpoch();
        if (past.contains(key) || isKnown || isOutdated(offer.getMatch(), offer.getEpoch())) {
            return;
        }
        if (open == null) {
            System.err.println("seated in " + offer.getMatch() + " at seat " + offer.getSeat() + " against " + offer.getBotsList());
            open = new Seat(this, offer);
            seats.put(key, open);
        }
        Link left = open.link;
        open.offer = offer;
        open.link = links.computeIfAbsent(endpointOf(offer), to -> new Link(this, wire, to));
        open.link.openOrSit(open);
        closeLinkWithoutSeats(left);
    }

    private Wire.Endpoint endpointOf(SeatOffer offer) {
        return offer.getAddress().isEmpty() ? lobby : Wire.Endpoint.read(offer.getAddress(), lobby);
    }

    /** Asks the referee how the match ended, because its word may have been lost. */
    private void handleClosed(Seat.Key key) {
        seatOf(key).ifPresent(seat -> {
            later(1_000, seat, seat::sitDown);
            later(30_000, seat, () -> closeSeat(seat));
        });
    }

    // Seats

    /** Whether this epoch is older than one already seen; epoch 0 belongs to no owner. It notes the epoch. */
    boolean isOutdated(String match, long epoch) {
        return epoch > 0 && epochs.merge(match, epoch, Math::max) > epoch;
    }

    Optional<Seat> seatOf(Seat.Key key) {
        return Optional.ofNullable(seats.get(key));
    }

    List<Seat> seatsAt(Link link) {
        return seats.values().stream().filter(seat -> seat.link == link).toList();
    }

    void countMatch() {
        finished++;
    }

    void closeSeat(Seat closed) {
        seats.remove(closed.key);
        past.add(closed.key);
        closeLinkWithoutSeats(closed.link);
        isDraining = isDraining || (matches > 0 && finished >= matches);
        sendLimit();
        endIfDone();
    }

    private void closeLinkWithoutSeats(Link link) {
        if (link != null && seatsAt(link).isEmpty()) {
            links.remove(link.to, link);
            link.close();
        }
    }

    private void endIfDone() {
        if (isDrained && seats.isEmpty()) {
            end.complete(null);
        }
    }

    // Other threads

    /** Computes beside the streams, so that pings are answered meanwhile. */
    <T> void think(Supplier<T> compute, Consumer<T> use) {
        thinking.execute(() -> {
            T found = compute.get();
            thread.execute(() -> use.accept(found));
        });
    }

    /** Does something after a while, unless the seat is closed by then. */
    void later(long waitMs, Seat seat, Runnable act) {
        thread.schedule(() -> {
            if (seats.get(seat.key) == seat) {
                act.run();
            }
        }, waitMs, TimeUnit.MILLISECONDS);
    }
}
