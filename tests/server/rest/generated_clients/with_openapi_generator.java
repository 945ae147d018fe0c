import java.io.BufferedReader;
import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.BotServiceApi;
import org.openapitools.client.api.MatchServiceApi;
import org.openapitools.client.model.CreateMatchRequest;
import org.openapitools.client.model.Match;
import org.openapitools.client.model.RegisterBotRequest;
import org.openapitools.client.model.WatchMatchAnswer;

public class Main {
    public static void main(String[] args) throws Exception {
        ApiClient client = new ApiClient().setBasePath(args[0]);
        client.setBearerToken(args[1]);
        MatchServiceApi matches = new MatchServiceApi(client);
        String bot = new BotServiceApi(client).registerBot(new RegisterBotRequest().bot("made-by-java")).getBot().getName();
        CreateMatchRequest asked = new CreateMatchRequest().game("games/ugo").bots(List.of(bot, args[2]));
        String name = matches.createMatch(asked).getMatch().getName();
        Match read = matches.getMatch(name.replace("matches/", ""), null).getMatch();
        System.out.println("created " + read.getState() + " " + String.join(" ", read.getBots()));
        watch("finished", matches, args[3]);
        watch("live", matches, args[4]);
        System.exit(0);
    }

    private static void watch(String word, MatchServiceApi matches, String match) throws Exception {
        BufferedReader lines =
                new BufferedReader(matches.watchMatchCall(match, null, null).execute().body().charStream());
        for (String line; (line = lines.readLine()) != null; ) {
            WatchMatchAnswer item = line.isEmpty() ? null : WatchMatchAnswer.fromJson(line);
            if (item != null && item.getMatch() != null) {
                System.out.println(word + " " + item.getMatch().getState());
            }
        }
    }
}
