package starter;

import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;

/**
 * One stream that is opened again whenever it ends, until it ends for good or is closed. Everything of it happens in the bot's
 * one thread.
 */
final class Stream<Q, A> {
    private final String name;
    private final boolean isLobby;
    private final Wire wire;
    private final Wire.Endpoint to;
    private final BiFunction<ManagedChannel, StreamObserver<A>, StreamObserver<Q>> open;
    private final ScheduledExecutorService thread;
    private final Listener<A> listener;

    private ManagedChannel channel;
    private StreamObserver<Q> requests;
    private boolean isClosed;
    private int failures;
    private long openedMs;

    /** What a stream tells its owner. */
    interface Listener<A> {
        void handleOpened();

        void handleAnswer(A answer);

        void handleFinalEnd(Throwable error);
    }

    Stream(
            String name, boolean isLobby, Wire wire, Wire.Endpoint to, ScheduledExecutorService thread, Listener<A> listener,
            BiFunction<ManagedChannel, StreamObserver<A>, StreamObserver<Q>> open) {
        this.name = name;
        this.isLobby = isLobby;
        this.wire = wire;
        this.to = to;
        this.thread = thread;
        this.listener = listener;
        this.open = open;
    }

    /** Opens the stream, unless it was closed meanwhile. */
    void open() {
        if (isClosed) {
            return;
        }
        openedMs = System.currentTimeMillis();
        try {
            channel = wire.connect(to);
            requests = open.apply(channel, new Answers(channel));
        } catch (RuntimeException error) {
            handleEnd(channel, error);
            return;
        }
        listener.handleOpened();
    }

    /** Sends a request, or drops it while the stream is down: the owner repeats what was not confirmed. */
    void send(Q request) {
        if (requests != null) {
            requests.onNext(request);
        }
    }

    void close() {
        isClosed = true;
        requests = null;
        if (channel != null) {
            channel.shutdownNow();
        }
    }

    private void handleEnd(ManagedChannel ended, Throwable error) {
        if (isClosed || ended != channel) {
            return;
        }
        requests = null;
        if (channel != null) {
            channel.shutdownNow();
        }
        if (Wire.isFinal(error, isLobby)) {
            listener.handleFinalEnd(error);
            return;
        }
        failures = System.currentTimeMillis() - openedMs > Wire.LONGEST_WAIT_MS ? 0 : failures + 1;
        System.err.println(name + ": " + error.getMessage() + "; coming again");
        thread.schedule(this::open, Wire.waitAfterMs(error, failures), TimeUnit.MILLISECONDS);
    }

    /** Brings what the library says into the bot's thread. */
    private final class Answers implements StreamObserver<A> {
        private final ManagedChannel opened;

        Answers(ManagedChannel opened) {
            this.opened = opened;
        }

        @Override
        public void onNext(A answer) {
            inThread(() -> listener.handleAnswer(answer));
        }

        @Override
        public void onError(Throwable error) {
            thread.execute(() -> handleEnd(opened, error));
        }

        @Override
        public void onCompleted() {
            onError(Status.UNAVAILABLE.withDescription("the server closed the stream").asRuntimeException());
        }

        private void inThread(Runnable act) {
            thread.execute(() -> {
                if (!isClosed && opened == channel) {
                    act.run();
                }
            });
        }
    }
}
