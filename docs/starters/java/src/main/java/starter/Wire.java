package starter;

import com.google.protobuf.InvalidProtocolBufferException;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.TlsChannelCredentials;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.MetadataUtils;
import java.io.File;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import seatwise.v1.ErrorInfo;

/** Opens channels that may carry the token, and says what to do when a stream ends. */
final class Wire {
    static final long FIRST_WAIT_MS = 100;
    static final long LONGEST_WAIT_MS = 5_000;
    private static final Metadata.Key<String> AUTHORIZATION =
            Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
    private static final Set<String> THIS_MACHINE = Set.of("localhost", "127.0.0.1", "[::1]");
    private static final Set<Status.Code> FINAL_AT_LOBBY = Set.of(
            Status.Code.NOT_FOUND, Status.Code.INVALID_ARGUMENT, Status.Code.OUT_OF_RANGE, Status.Code.ALREADY_EXISTS,
            Status.Code.FAILED_PRECONDITION, Status.Code.UNIMPLEMENTED);

    private final String token;
    private final File caFile;
    private final boolean mayTravelInClear;

    /** An address without its scheme. */
    record Endpoint(String target, boolean isTls) {
        /** Reads host:port, https://host:port or http://host:port. Without a scheme an offer's address is as the lobby's. */
        static Endpoint read(String address, Endpoint lobby) {
            if (address.startsWith("https://")) {
                return new Endpoint(address.substring(8), true);
            }
            if (address.startsWith("http://")) {
                return new Endpoint(address.substring(7), false);
            }
            return new Endpoint(address, lobby != null ? lobby.isTls() : !isThisMachine(address));
        }
    }

    Wire(String token, File caFile, boolean mayTravelInClear) {
        this.token = token;
        this.caFile = caFile;
        this.mayTravelInClear = mayTravelInClear;
    }

    /** Opens a channel of its own for one stream. */
    ManagedChannel connect(Endpoint to) {
        if (!to.isTls() && !mayTravelInClear && !isThisMachine(to.target())) {
            throw Status.UNAUTHENTICATED
                    .withDescription("the token would travel in clear; use https://, or --insecure")
                    .asRuntimeException();
        }
        Metadata headers = new Metadata();
        headers.put(AUTHORIZATION, "Bearer " + token);
        return Grpc.newChannelBuilder(to.target(), to.isTls() ? tls() : InsecureChannelCredentials.create())
                .keepAliveTime(10, TimeUnit.SECONDS)
                .keepAliveTimeout(5, TimeUnit.SECONDS)
                .intercept(MetadataUtils.newAttachHeadersInterceptor(headers))
                .build();
    }

    /** The library checks the host's name too. */
    private ChannelCredentials tls() {
        try {
            TlsChannelCredentials.Builder builder = TlsChannelCredentials.newBuilder();
            return (caFile == null ? builder : builder.trustManager(caFile)).build();
        } catch (IOException error) {
            throw Status.UNAUTHENTICATED.withDescription(caFile + ": " + error.getMessage()).asRuntimeException();
        }
    }

    private static boolean isThisMachine(String target) {
        return THIS_MACHINE.contains(target.replaceFirst(":\\d+$", ""));
    }

    /** Whether another attempt must not be made: the table "When to reconnect" of docs/protocol.md. */
    static boolean isFinal(Throwable error, boolean isLobby) {
        Status.Code code = Status.fromThrowable(error).getCode();
        if (code == Status.Code.UNAUTHENTICATED || code == Status.Code.PERMISSION_DENIED) {
            return true;
        }
        return reasonOf(error).getReason().equals("REPLACED") || (isLobby && FINAL_AT_LOBBY.contains(code));
    }

    /** Returns the reason that the server gave; an empty one if it gave none. */
    static ErrorInfo reasonOf(Throwable error) {
        com.google.rpc.Status status = StatusProto.fromThrowable(error);
        try {
            return status == null || status.getDetailsCount() == 0
                    ? ErrorInfo.getDefaultInstance()
                    : ErrorInfo.parseFrom(status.getDetails(0).getValue());
        } catch (InvalidProtocolBufferException unreadable) {
            return ErrorInfo.getDefaultInstance();
        }
    }

    /** Returns a random time below a bound that doubles, after the time that a full server asks for. */
    static long waitAfterMs(Throwable error, int failures) {
        long bound = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS << Math.min(failures, 10));
        String asked = reasonOf(error).getMetadataOrDefault("retry_after", "0");
        return (long) (Double.parseDouble(asked) * 1000) + ThreadLocalRandom.current().nextLong(bound);
    }
}
