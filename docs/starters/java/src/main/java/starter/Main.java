package starter;

import java.io.File;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import sun.misc.Signal;

/** A whole Seatwise bot: it attends a queue, plays UGO! over gRPC, and survives lost links. Your own ideas go into Strategy. */
public final class Main {
    private static final String HELP = """
            --address ADDRESS   the server: host:port, https://host:port or http://host:port
            --queue NAMES       the queues to wait in, with commas between them; empty for matches that name the bot
            --max-matches N     play at most so many matches at once
            --matches N         stop after so many matches; 0 means never
            --tls-ca FILE       a file with the CAs to trust, or the server's own certificate
            --insecure          let the token travel in clear to another machine
            The environment variable SEATWISE_TOKEN holds the bot's token.""";

    private Main() {}

    public static void main(String[] arguments) throws InterruptedException {
        Map<String, String> options = read(arguments);
        String token = System.getenv().getOrDefault("SEATWISE_TOKEN", "").strip();
        if (options.containsKey("--help") || token.isEmpty()) {
            System.err.println(HELP);
            System.exit(2);
        }
        File caFile = options.containsKey("--tls-ca") ? new File(options.get("--tls-ca")) : null;
        Wire wire = new Wire(token, caFile, options.containsKey("--insecure"));
        Bot bot = new Bot(
                wire,
                Wire.Endpoint.read(options.getOrDefault("--address", "localhost:7433"), null),
                queues(options.getOrDefault("--queue", "casual")),
                Integer.parseInt(options.getOrDefault("--max-matches", "4")),
                Integer.parseInt(options.getOrDefault("--matches", "0")));
        drainOnSignal(bot, "INT");
        drainOnSignal(bot, "TERM");
        System.exit(exitCode(bot));
    }

    private static int exitCode(Bot bot) throws InterruptedException {
        try {
            bot.run().get();
            return 0;
        } catch (ExecutionException error) {
            System.err.println(error.getCause().getMessage() + " [" + Wire.reasonOf(error.getCause()).getReason() + "]");
            return 1;
        }
    }

    /** Finishes the open matches after the first Ctrl-C, and leaves at once after the second. */
    private static void drainOnSignal(Bot bot, String name) {
        Signal.handle(new Signal(name), first -> {
            Signal.handle(first, second -> Runtime.getRuntime().halt(1));
            bot.drain();
        });
    }

    private static Map<String, String> read(String[] arguments) {
        Map<String, String> options = new HashMap<>();
        for (int place = 0; place < arguments.length; place++) {
            boolean isFlag = arguments[place].equals("--insecure") || arguments[place].equals("--help");
            options.put(arguments[place], isFlag || place + 1 == arguments.length ? "" : arguments[++place]);
        }
        return options;
    }

    private static List<String> queues(String names) {
        return Arrays.stream(names.split(",")).filter(name -> !name.isEmpty()).toList();
    }
}
